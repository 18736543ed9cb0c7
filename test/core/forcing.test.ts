import { describe, expect, it } from 'vitest'
import { answer, hang, loseAnswer } from './treatments.ts'
import { eachWorld, soFar } from './world.ts'

const world = eachWorld()

describe('forceRelease', () => {
  it('revokes: the key stays closed until its holder has heard of it and stopped', async () => {
    const [holder, operator, third] = [world().worker({ ttl: '3s' }), world().worker(), world().worker()]
    const lease = await holder.hold('job')
    let abortedAt = NaN
    lease.signal.addEventListener('abort', () => (abortedAt = world().time.now))
    expect(await world().until(operator.locks.forceRelease('job'))).toBe('revoked')
    expect(await world().until(third.locks.acquire('job'))).toBeNull()
    expect(await world().until(operator.locks.peek('job'))).toMatchObject({ revoked: true })
    await world().until(third.locks.acquire('job', { wait: '10s' }))
    expect(abortedAt).toBeLessThanOrEqual(world().time.now)
    expect(world().time.now).toBeLessThanOrEqual(1_010)
    expect(lease.lossReason).toBe('revoked')
  })

  it('of a holder that does not hear any more closes the key until its expiry, and no longer', async () => {
    const [holder, operator, third] = [world().worker({ ttl: '3s' }), world().worker(), world().worker()]
    const lease = await holder.hold('job')
    world().driver.always('refresh', hang)
    await world().until(operator.locks.forceRelease('job'))
    await world().until(third.locks.acquire('job', { wait: Infinity }))
    expect(lease.isHeld()).toBe(false)
    expect(world().time.now).toBeLessThanOrEqual(3_010)
  })

  it('is not undone by the holder: neither a renewal nor an extension helps', async () => {
    const [holder, operator] = [world().worker({ ttl: '3s' }), world().worker()]
    const lease = await holder.hold('job', { heartbeat: false })
    await world().until(operator.locks.forceRelease('job'))
    await expect(world().until(lease.extend('1h'))).rejects.toMatchObject({
      code: 'LEASE_LOST',
      reason: 'revoked',
    })
    await world().time.advance(100)
    expect(await world().until(operator.locks.acquire('job'))).not.toBeNull()
  })

  it('with immediate frees the key at once, and the holder hears of it at its next renewal', async () => {
    const [holder, operator, third] = [world().worker({ ttl: '3s' }), world().worker(), world().worker()]
    const lease = await holder.hold('job')
    expect(await world().until(operator.locks.forceRelease('job', { immediate: true }))).toBe('released')
    const successor = await third.hold('job')
    expect(successor.fence).toBeGreaterThan(lease.fence)
    await world().time.advance(1_100)
    expect(lease.isHeld()).toBe(false)
    expect(lease.lossReason).toBe('gone')
    expect(successor.isHeld()).toBe(true)
    expect(await world().until(lease.release())).toBe('already-lost')
    expect(successor.isHeld()).toBe(true)
  })

  it('with immediate wakes whoever waits', async () => {
    const [holder, operator, third] = [world().worker(), world().worker(), world().worker()]
    await holder.hold('job')
    const waiting = third.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    void operator.locks.forceRelease('job', { immediate: true })
    await world().time.advance(10)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('takes the key only from the holder that the operator saw', async () => {
    const [holder, operator, third] = [world().worker(), world().worker(), world().worker()]
    const lease = await holder.hold('job')
    const seen = await world().until(operator.locks.peek('job'))
    await world().until(lease.release())
    const successor = await third.hold('job')
    for (const immediate of [false, true]) {
      expect(await world().until(operator.locks.forceRelease('job', { fence: seen?.fence, immediate }))).toBe(
        'changed',
      )
    }
    await world().time.advance(20_000)
    expect(successor.isHeld()).toBe(true)
  })

  it('without a fence looks first, and compares what it saw: a successor in between is safe', async () => {
    const [holder, operator, third] = [world().worker(), world().worker(), world().worker()]
    const lease = await holder.hold('job')
    world().driver.plan('revoke', async (pass) => {
      await lease.release()
      await third.locks.acquire('job')
      return pass()
    })
    expect(await world().until(operator.locks.forceRelease('job', { immediate: true }))).toBe('changed')
    expect(await world().until(operator.locks.peek('job'))).not.toBeNull()
  })

  it('of a key that nobody holds says so', async () => {
    const { locks } = world().worker()
    expect(await world().until(locks.forceRelease('job'))).toBe('free')
    expect(await world().until(locks.forceRelease('job', { fence: 5 }))).toBe('free')
  })

  it('whose answer was lost says that it does not know, and asking again is harmless', async () => {
    const [holder, operator] = [
      world().worker({ requestTimeout: '1s' }),
      world().worker({ requestTimeout: '1s' }),
    ]
    const lease = await holder.hold('job')
    world().driver.plan('revoke', loseAnswer)
    const { fence } = lease
    await expect(
      world().until(operator.locks.forceRelease('job', { fence, immediate: true })),
    ).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      applied: 'unknown',
    })
    expect(await world().until(operator.locks.forceRelease('job', { fence, immediate: true }))).toBe('free')
  })

  it('of a record that is locked for long gives up within the request timeout, without a storm', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    world().driver.always('revoke', answer({ outcome: 'busy' }))
    await expect(world().until(locks.forceRelease('job', { fence: 5 }))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      applied: 'no',
    })
    expect(world().driver.count('revoke')).toBeLessThan(200)
  })

  it('that fails for this key says why', async () => {
    const { locks } = world().worker()
    world().driver.always('revoke', answer({ outcome: 'failed', error: new Error('odd type') }))
    await expect(world().until(locks.forceRelease('job', { fence: 5 }))).rejects.toThrow(/odd type/)
  })
})

describe('looking', () => {
  it('shows who holds what since when, and whether somebody waits; never the token', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job', { label: 'import' })
    const waiting = other.locks.acquire('job', { wait: '2s' })
    await world().time.advance(1_000)
    const info = await world().until(other.locks.peek('job'))
    expect(info).toMatchObject({
      key: 'job',
      fence: lease.fence,
      holder: { pid: process.pid, label: 'import' },
      awaited: true,
      revoked: false,
    })
    expect(info?.expiresAt.getTime()).toBe(world().time.storeNow() + (info?.remainingMs ?? NaN))
    expect(JSON.stringify(info)).not.toContain(lease.token)
    expect(JSON.stringify(await world().until(other.locks.list()))).not.toContain(lease.token)
    await world().until(waiting)
  })

  it('tells two services of one process apart', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('a')
    await other.hold('b')
    const holders = (await world().until(one.locks.list())).map(({ holder }) => holder.instance)
    expect(new Set(holders).size).toBe(2)
  })

  it('lists by key, with a prefix and a limit, page by page', async () => {
    const { locks } = world().worker()
    const keys = Array.from({ length: 1_234 }, (_, index) => `${index % 2 === 0 ? 'even' : 'odd'}:${index}`)
    await world().until(Promise.all(keys.map((key) => locks.acquire(key))))
    const all = await world().until(locks.list({ limit: 10_000 }))
    expect(all.map(({ key }) => key)).toEqual(keys.toSorted())
    const even = await world().until(locks.list({ prefix: 'even:', limit: 10_000 }))
    expect(even).toHaveLength(617)
    world().driver.forget()
    expect(await world().until(locks.list({ limit: 700 }))).toHaveLength(700)
    // No page is larger than what is still wanted.
    expect(
      world()
        .driver.of('scan')
        .map(({ items }) => (items[0] as { limit?: number }).limit),
    ).toEqual([500, 200])
    expect(await world().until(locks.list())).toHaveLength(1_000)
  })

  it('with a prefix that no stored key can begin with finds nothing, and asks nobody', async () => {
    const { locks } = world().worker()
    for (const prefix of ['a\0', '\ud800', 'x'.repeat(256)]) {
      expect(await world().until(locks.list({ prefix }))).toEqual([])
    }
    expect(world().driver.count()).toBe(0)
  })

  it('shows a key that is stored as its hash together with what it was', async () => {
    const { locks, hold } = world().worker()
    const key = `nul \0 ${'x'.repeat(300)}`
    await hold(key)
    const [info] = await world().until(locks.list())
    expect(info?.key).toMatch(/^sha256:/)
    expect(info?.holder.key).toBe(key.slice(0, 200))
    expect(await world().until(locks.peek(key))).toMatchObject({ key: info?.key })
  })

  it('never sends more than 1,000 bytes about a holder, whatever its label and key', async () => {
    const { hold } = world().worker()
    let longest = 0
    world().driver.always('acquire', (pass, { items }) => {
      for (const item of items)
        longest = Math.max(longest, Buffer.byteLength((item as { holder: string }).holder))
      return pass()
    })
    for (const text of ['😀', '\0', '\ud800', '"', 'é']) {
      await hold(text.repeat(500), { label: text.repeat(200 / text.length) })
    }
    expect(longest).toBeGreaterThan(200)
    expect(longest).toBeLessThanOrEqual(1_000)
  })

  it.each(['', 'null', '5', '{', '{"pid":"x"}', '[]', '"text"'])(
    'survives a holder that is %j',
    async (holder) => {
      const { locks } = world().worker()
      const record = {
        key: 'k',
        fence: 1,
        holder,
        acquiredAt: 0,
        expiresAt: 1,
        remainingMs: 1,
        awaited: false,
        revoked: false,
      }
      world().driver.always('peek', () => Promise.resolve([record]))
      expect((await world().until(locks.peek('k')))?.holder).toEqual({ instance: '', host: '', pid: 0 })
    },
  )
})
