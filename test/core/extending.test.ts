import { onEvent } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { answer, cutAnswer, delay, fail, hang, loseAnswer } from './treatments.ts'
import { eachWorld } from './world.ts'

const world = eachWorld()

describe('extend', () => {
  it('gives at least so much time from now, and later renewals keep giving it', async () => {
    const { hold } = world().worker({ ttl: '10s' })
    const lease = await hold('job')
    await world().until(lease.extend('1h'))
    expect(lease.remainingMs).toBe(3_600_000 - 36_000)
    world().driver.forget()
    await world().time.advance(30_000)
    expect(lease.remainingMs).toBeGreaterThan(3_600_000 - 36_000 - 10_000)
    for (const { items } of world().driver.of('refresh')) expect(items[0]?.ttlMs).toBe(3_600_000)
  })

  it('by less than is left takes nothing away, in the store or here', async () => {
    const [one, other] = [world().worker({ ttl: '30s' }), world().worker()]
    const lease = await one.hold('job', { heartbeat: false })
    await world().time.advance(1_000)
    await world().until(lease.extend('5s'))
    expect(lease.remainingMs).toBeGreaterThan(28_000)
    await world().time.advance(27_000)
    expect(lease.isHeld()).toBe(true)
    expect(await world().until(other.locks.acquire('job'))).toBeNull()
  })

  it('is overtaken by no heartbeat with the old ttl', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job', { ttl: '300ms' })
    // The heartbeat hangs on its way and arrives after the extension was confirmed.
    world().driver.plan('refresh', delay(world().time, 5_000))
    await world().time.advance(110)
    await world().until(lease.extend('60s'))
    await world().time.advance(6_000)
    world().driver.always('refresh', hang)
    await world().time.advance(40_000)
    expect(lease.isHeld()).toBe(true)
    expect(await world().until(other.locks.acquire('job'))).toBeNull()
  })

  it.each([
    ['was lost', loseAnswer],
    ['was cut off', cutAnswer],
    ['never came', hang],
    ['was a refusal', fail('not-sent')],
    ['was an error of its own', answer({ outcome: 'failed', error: new Error('odd') })],
  ])(
    'whose answer %s rejects, the deadline stays where it was, and the lease is held until then',
    async (_how, treatment) => {
      const { hold } = world().worker({ ttl: '10s' })
      const lease = await hold('job', { heartbeat: false })
      await world().time.advance(1_000)
      world().driver.plan('refresh', treatment)
      await expect(world().until(lease.extend('1h'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      expect(lease.remainingMs).toBeLessThanOrEqual(8_900)
      expect(lease.isHeld()).toBe(true)
      await world().until(lease.extend('1h'))
      expect(lease.remainingMs).toBeGreaterThan(3_500_000)
    },
  )

  it('that fails leaves its wish to the heartbeat', async () => {
    const { hold } = world().worker({ ttl: '10s' })
    const lease = await hold('job')
    world().driver.plan('refresh', fail('not-sent'))
    await expect(world().until(lease.extend('1h'))).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await world().time.advance(5_000)
    expect(lease.remainingMs).toBeGreaterThan(3_500_000)
  })

  it('of a lease that is gone rejects, and the loss is known at once', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    await world().until(other.locks.forceRelease('job', { immediate: true }))
    await expect(world().until(lease.extend('1m'))).rejects.toMatchObject({
      code: 'LEASE_LOST',
      reason: 'gone',
    })
    expect(lease.isHeld()).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })

  it('of a lease that was released rejects and asks nobody', async () => {
    const { hold } = world().worker()
    const lease = await hold('job')
    await world().until(lease.release())
    world().driver.forget()
    await expect(lease.extend('1m')).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(world().driver.count()).toBe(0)
  })

  it('that is answered after the lease was released does not bring it back', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    world().driver.plan('refresh', delay(world().time, 100))
    const extending = lease.extend('24h').catch((error: unknown) => error)
    await world().time.advance(10)
    expect(await world().until(lease.release())).toBe('released')
    expect(await world().until(extending)).toMatchObject({ code: 'LEASE_LOST' })
    expect(lease.isHeld()).toBe(false)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('several times at once confirms each', async () => {
    const { hold } = world().worker()
    const lease = await hold('job')
    await world().until(Promise.all(['1m', '5m', '2m'].map((duration) => lease.extend(duration as '1m'))))
    expect(lease.remainingMs).toBe(300_000 - 3_000)
  })
})

describe('the maximum lifetime', () => {
  it('ends a lease however healthy its heartbeat: work that never ends does not hold it for ever (N58, N63, M39)', async () => {
    const [one, other] = [world().worker({ ttl: '2s', maxLifetime: '10s' }), world().worker()]
    const told: unknown[] = []
    const off = onEvent('leasehold:max-lifetime', (event) => told.push(event))
    const lease = await one.hold('job')
    let abortedAt = NaN
    lease.signal.addEventListener('abort', () => (abortedAt = world().time.now))
    const waiting = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(9_500)
    expect(lease.isHeld()).toBe(true)
    await world().until(waiting)
    off()
    expect(abortedAt).toBeLessThan(10_000)
    expect(world().time.now).toBeLessThanOrEqual(10_100)
    expect(lease.lossReason).toBe('max-lifetime')
    expect(told).toEqual([{ namespace: 'default', key: 'job', fence: lease.fence, maxLifetimeMs: 10_000 }])
  })

  it('is 24 hours unless the ttl is longer', async () => {
    const { hold } = world().worker()
    const day = await hold('a', { ttl: '1h' })
    const days = await hold('b', { ttl: '3d', heartbeat: false })
    await world().time.advance(86_400_000 - 120_000)
    expect([day.isHeld(), days.isHeld()]).toEqual([true, true])
    await world().time.advance(120_000)
    expect([day.isHeld(), days.isHeld()]).toEqual([false, true])
  })

  it('cuts an extension that asks for more', async () => {
    const { hold } = world().worker({ ttl: '2s', maxLifetime: '10s' })
    const lease = await hold('job')
    await world().until(lease.extend('1h'))
    expect(lease.remainingMs).toBeLessThanOrEqual(10_000)
    expect(lease.remainingMs).toBeGreaterThan(9_800)
    await world().time.advance(10_000)
    expect(lease.lossReason).toBe('max-lifetime')
  })

  it('is never exceeded, also if the store answers that more remains', async () => {
    const { hold } = world().worker({ ttl: '2s', maxLifetime: '10s' })
    world().driver.always('refresh', answer({ outcome: 'held', remainingMs: 3_600_000 }))
    const lease = await hold('job')
    await world().time.advance(10_000)
    expect(lease.isHeld()).toBe(false)
  })

  it('does not stop a holder from hearing that its lease was revoked', async () => {
    const [one, other] = [world().worker({ ttl: '30s', maxLifetime: '2h' }), world().worker()]
    const lease = await one.hold('job')
    await world().until(lease.extend('3h'))
    await world().time.advance(60_000)
    expect(await world().until(other.locks.forceRelease('job'))).toBe('revoked')
    await world().time.advance(11_000)
    expect(lease.isHeld()).toBe(false)
    expect(lease.lossReason).toBe('revoked')
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })
})
