import { LeaseLostError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { answer, cutAnswer, delay, fail, hang, loseAnswer } from './treatments.ts'
import { eachWorld, soFar } from './world.ts'

const world = eachWorld()

describe('a release', () => {
  it('frees the key at once, and the lease is not trusted from the call on', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const { signal } = lease
    const releasing = lease.release()
    expect(lease.isHeld()).toBe(false)
    expect(lease.remainingMs).toBe(0)
    expect(() => lease.assertHeld()).toThrow(LeaseLostError)
    expect(await world().until(releasing)).toBe('released')
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
    // Given back, not lost.
    expect(signal.aborted).toBe(false)
    expect(lease.lossReason).toBeNull()
  })

  it('is idempotent: any number of calls send one and answer the same (N2)', async () => {
    const { hold } = world().worker()
    const lease = await hold('job')
    const outcomes = await world().until(Promise.all([lease.release(), lease.release()]))
    expect([...outcomes, await lease.release()]).toEqual(['released', 'released', 'released'])
    expect(world().driver.count('release')).toBe(1)
  })

  it('is done at the end of the scope', async () => {
    const { locks, hold } = world().worker()
    const scope = async () => {
      await using lease = await hold('job')
      expect(lease.isHeld()).toBe(true)
    }
    await world().until(scope())
    expect(await world().until(locks.peek('job'))).toBeNull()
  })

  it.each([1, 1_000, 3_600_000])(
    '%i ms after the lease ended settles with already-lost (N1, N2)',
    async (laterMs) => {
      const { hold } = world().worker()
      const lease = await hold('job', { ttl: '1s', heartbeat: false })
      await world().time.advance(1_000 + laterMs)
      const startedAt = world().time.now
      expect(await world().until(lease.release())).toBe('already-lost')
      expect(world().time.now).toBe(startedAt)
    },
  )

  it('of a lease that was taken over leaves the successor alone, who can release it (N27, N28, M6)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job', { ttl: '1s', heartbeat: false })
    await world().time.advance(1_000)
    const successor = await other.hold('job')
    expect(await world().until(lease.release())).toBe('already-lost')
    expect(successor.isHeld()).toBe(true)
    expect(await world().until(one.locks.acquire('job'))).toBeNull()
    await world().time.advance(60_000)
    expect(successor.isHeld()).toBe(true)
    expect(await world().until(successor.release())).toBe('released')
  })

  it('of a record that is not there settles with already-lost', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    await world().until(other.locks.forceRelease('job', { immediate: true }))
    await world().until((await other.hold('job')).release())
    await world().time.advance(15_000)
    expect(await world().until(lease.release())).toBe('already-lost')
  })

  it.each([
    ['was lost', loseAnswer],
    ['was cut off', cutAnswer],
  ])('whose answer %s is asked again and still says released', async (_how, treatment) => {
    const { hold } = world().worker({ requestTimeout: '4s' })
    const lease = await hold('job')
    world().driver.plan('release', treatment)
    const outcome = await world().until(lease.release())
    expect(['released', 'unknown']).toContain(outcome)
    if (treatment === cutAnswer) expect(outcome).toBe('released')
  })

  it.each([
    ['hangs', hang],
    ['refuses', fail('not-sent')],
    ['throws', () => Promise.reject(new Error('odd'))],
    ['cannot serve', fail('unusable')],
    ['finds the key odd', fail('bad-item')],
    ['is busy', answer({ outcome: 'busy' })],
    ['fails for this key', answer({ outcome: 'failed', error: new Error('odd') })],
  ])(
    'of a store that %s settles within one request timeout as unknown, and never throws (N1)',
    async (_how, treatment) => {
      const { hold } = world().worker({ requestTimeout: '2s' })
      const lease = await hold('job')
      world().driver.always('release', treatment)
      const startedAt = world().time.now
      expect(await world().until(lease.release())).toBe('unknown')
      expect(world().time.now - startedAt).toBeLessThanOrEqual(2_000)
      expect(world().driver.count('release')).toBeLessThanOrEqual(100)
    },
  )

  it('keeps its bound behind other calls that hang', async () => {
    const { hold } = world().worker({ requestTimeout: '2s' })
    const leases = [await hold('a'), await hold('b'), await hold('c'), await hold('d')]
    world().driver.always('release', hang)
    for (const lease of leases.slice(0, 3)) {
      void lease.release()
      await world().time.advance(500)
    }
    const startedAt = world().time.now
    await world().until(leases[3]?.release() ?? Promise.resolve('released' as const))
    expect(world().time.now - startedAt).toBeLessThanOrEqual(2_000)
  })

  it('goes by the request timeout of its own acquire', async () => {
    const { hold } = world().worker({ requestTimeout: '30s' })
    const lease = await hold('job', { requestTimeout: '1s' })
    world().driver.always('release', hang)
    const startedAt = world().time.now
    expect(await world().until(lease.release())).toBe('unknown')
    expect(world().time.now - startedAt).toBe(1_000)
  })

  it('that the store never heard of leaves the key to its ttl, and no longer (G4)', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const lease = await one.hold('job', { ttl: '5s' })
    world().driver.always('release', fail('not-sent'))
    await world().until(lease.release())
    world().driver.heal()
    await world().until(other.locks.acquire('job', { wait: Infinity }))
    expect(world().time.now).toBeLessThanOrEqual(5_010)
  })

  it('is sent again where the record was locked, first at once and then waiting', async () => {
    const { hold } = world().worker()
    const lease = await hold('job')
    world().driver.plan('release', answer({ outcome: 'busy' }), answer({ outcome: 'busy' }))
    expect(await world().until(lease.release())).toBe('released')
    expect(
      world()
        .driver.of('release')
        .map(({ call }) => call?.lockedRows),
    ).toEqual(['skip', 'wait', 'wait'])
  })

  it('of a hundred leases at once is one call', async () => {
    const { locks } = world().worker()
    const leases = await world().until(
      Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`k${i}`))),
    )
    await world().until(Promise.all(leases.map(async (lease) => lease?.release())))
    expect(world().driver.count('release')).toBe(1)
  })

  it('that was given up in the air, and came to nothing, is made again when the call has ended', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const lease = await one.hold('job', { ttl: '1h' })
    const end = async () => {
      await world().time.sleep(3_000)
      throw new Error('ETIMEDOUT')
    }
    world().driver.plan('release', end, end)
    expect(await world().until(lease.release())).toBe('unknown')
    expect(await world().until(other.locks.acquire('job'))).toBeNull()
    await world().time.advance(2_100)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('that was given up in the air, and was carried out, is not made again', async () => {
    const { hold } = world().worker({ requestTimeout: '1s' })
    const lease = await hold('job', { ttl: '1h' })
    const late = delay(world().time, 500, 2_500)
    world().driver.plan('release', late, late)
    expect(await world().until(lease.release())).toBe('unknown')
    await world().time.advance(60_000)
    expect(world().driver.count('release')).toBe(2)
  })

  it('that hangs is sent once more in time, over another connection where the driver has one', async () => {
    const { hold } = world().worker({ requestTimeout: '1s' })
    const lease = await hold('job', { ttl: '1h' })
    world().driver.plan('release', hang)
    expect(await world().until(lease.release())).toBe('released')
    const attempts = world()
      .driver.of('release')
      .map(({ call }) => call?.attempt)
    expect(attempts).toEqual([1, 2])
  })

  it('while a renewal is in the air is not undone by it', async () => {
    const [one, other] = [world().worker({ ttl: '3s' }), world().worker()]
    const lease = await one.hold('job')
    world().driver.plan('refresh', delay(world().time, 500))
    await world().time.advance(1_100)
    expect(await world().until(lease.release())).toBe('released')
    const successor = await other.hold('job')
    await world().time.advance(2_000)
    expect(successor.isHeld()).toBe(true)
    expect(lease.isHeld()).toBe(false)
  })

  it('after the service was closed sends nothing and answers at once', async () => {
    const { locks, hold } = world().worker()
    const lost = await hold('job', { ttl: '1s', heartbeat: false })
    await world().time.advance(2_000)
    const held = await hold('other')
    await world().until(locks.close())
    world().driver.forget()
    expect(await soFar(held.release())).toBe('already-lost')
    expect(['unknown', 'already-lost']).toContain(await soFar(lost.release()))
    await world().time.advance(60_000)
    expect(world().driver.count()).toBe(0)
  })
})
