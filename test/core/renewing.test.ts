import { LeaseLostError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { answer, cutAnswer, delay, fail, gate, hang, loseAnswer } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld } from './world.ts'

const world = eachWorld()

describe('a healthy lease', () => {
  it('is held for as long as its holder lives, and excludes others all the time (N29)', async () => {
    const [one, other] = [world().worker({ ttl: '300ms' }), world().worker({ ttl: '300ms' })]
    const lease = await one.hold('job')
    for (let passed = 0; passed < 5_000; passed += 70) {
      await world().time.advance(70)
      expect(lease.isHeld()).toBe(true)
      expect(await world().until(other.locks.acquire('job'))).toBeNull()
    }
    await world().until(lease.release())
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('is honoured by a contender with a shorter ttl (N25)', async () => {
    const [long, short] = [world().worker(), world().worker()]
    const lease = await long.hold('job', { ttl: '60s', heartbeat: false })
    for (let second = 0; second < 59; second++) {
      expect(await world().until(short.locks.acquire('job', { ttl: '1s' }))).toBeNull()
      await world().time.advance(1_000)
    }
    expect(lease.isHeld()).toBe(true)
  })

  it.each([-3_600_000, -11_000, 11_000, 3_600_000])(
    'is safe from a worker whose clock is off by %i ms, and that one trusts its own leases (N24)',
    async (wallOffsetMs) => {
      const [one, other] = [world().worker({ ttl: '10s' }), world().worker({ ttl: '10s', wallOffsetMs })]
      const lease = await one.hold('job')
      const own = await other.hold('other job')
      for (let second = 0; second < 30; second++) {
        await world().time.advance(1_000)
        expect(await world().until(other.locks.acquire('job'))).toBeNull()
      }
      expect([lease.isHeld(), own.isHeld()]).toEqual([true, true])
    },
  )

  it('is not one with another lease of the same holder: both are renewed and freed by themselves (M34)', async () => {
    const { hold, locks } = world().worker({ ttl: '1s' })
    const [one, other] = [await hold('a'), await hold('b')]
    await world().time.advance(5_000)
    expect(await world().until(one.release())).toBe('released')
    await world().time.advance(5_000)
    expect(other.isHeld()).toBe(true)
    expect(await world().until(locks.acquire('b'))).toBeNull()
    expect(await world().until(other.release())).toBe('released')
  })

  it('of eight callers at once through one service is held by one of them (N26)', async () => {
    const { locks } = world().worker()
    const leases = await world().until(Promise.all(Array.from({ length: 8 }, () => locks.acquire('job'))))
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1)
  })

  it('has a token of its own every time, also within one service (M38)', async () => {
    const { hold } = world().worker()
    const tokens = new Set<string>()
    for (let index = 0; index < 200; index++) {
      const lease = await hold(index % 2 === 0 ? 'same' : `k${index}`)
      tokens.add(lease.token)
      expect(lease.token).toMatch(/^[\w-]{24,64}$/)
      await world().until(lease.release())
    }
    expect(tokens.size).toBe(200)
  })
})

describe('a renewal that fails', () => {
  it.each([
    ['without having been sent', fail('not-sent')],
    ['without having been applied, in a deadlock', fail('retry')],
    ['with no telling whether it was applied', fail('unknown')],
    ['after it was applied', cutAnswer],
    ['by not answering', hang],
    ['by not answering, although it was applied', loseAnswer],
    ['with an error that is no fault of a driver', () => Promise.reject(new Error('ECONNRESET'))],
    ['for this item only', answer({ outcome: 'failed', error: new Error('odd') })],
    ['with an answer that is none', () => Promise.resolve([undefined])],
    ['with no list of answers', () => Promise.resolve(undefined)],
    ['with an answer that nobody knows', answer({ outcome: 'maybe' })],
  ])('once, %s, is tried again and the lease is kept (N17, N20, M13)', async (_how, treatment) => {
    const { hold } = world().worker({ ttl: '3s' })
    const lease = await hold('job')
    for (let beat = 0; beat < 5; beat++) {
      world().driver.plan('refresh', treatment)
      await world().time.advance(2_000)
    }
    expect(lease.isHeld()).toBe(true)
    expect(lease.lossReason).toBeNull()
  })

  it('several times in a row is tried again until the deadline, and the last minute is enough', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    const lease = await hold('job')
    world().driver.always('refresh', fail('not-sent'))
    await world().time.advance(2_700)
    world().driver.heal()
    await world().time.advance(10_000)
    expect(lease.isHeld()).toBe(true)
  })

  it('is tried again on another connection', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    await hold('job')
    world().driver.plan('refresh', hang, hang)
    await world().time.advance(3_000)
    expect(
      world()
        .driver.of('refresh')
        .slice(0, 3)
        .map(({ call }) => Math.min(2, call?.attempt ?? 0)),
    ).toEqual([1, 2, 2])
  })

  it('is not tried so often that it would be a burden', async () => {
    const { hold } = world().worker({ ttl: '30s' })
    await hold('job')
    world().driver.forget()
    world().driver.always('refresh', fail('not-sent'))
    await world().time.advance(30_000)
    expect(world().driver.count('refresh')).toBeGreaterThanOrEqual(8)
    expect(world().driver.count('refresh')).toBeLessThanOrEqual(100)
  })

  it.each([
    ['refused', fail('not-sent')],
    ['unanswered', hang],
    ['applied but unanswered', loseAnswer],
    ['answered with an error', fail('unusable')],
    ['answered with an error of its own', answer({ outcome: 'failed', error: new Error('forbidden') })],
    ['busy', answer({ outcome: 'busy' })],
  ])(
    'always, being %s: the loss comes before the lease ends in the store (N3, N18, M9, M20, M26)',
    async (_how, treatment) => {
      const [one, other] = [world().worker({ ttl: '4s' }), world().worker()]
      const lease = await one.hold('job')
      const { time, driver } = world()
      driver.always('refresh', treatment)
      let abortedAt = NaN
      lease.signal.addEventListener('abort', () => (abortedAt = time.now))
      const waiting = other.locks.acquire('job', { wait: '60s' })
      const successor = await world().until(waiting)
      const grantedAt = time.now
      expect(successor).not.toBeNull()
      expect(abortedAt).toBeLessThan(grantedAt)
      expect(lease.signal.reason).toBeInstanceOf(LeaseLostError)
      expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', key: 'job', reason: 'expired' })
    },
  )

  it('at the very end of a hanging request does not delay the loss to the request timeout (N18)', async () => {
    const { hold } = world().worker({ ttl: '4s', requestTimeout: '60s' })
    const lease = await hold('job')
    world().driver.always('everything', hang)
    await world().time.advance(3_999)
    expect(lease.signal.aborted).toBe(true)
    expect(lease.isHeld()).toBe(false)
    world().driver.heal()
  })

  it('because of slow answers, all of them slower than what is left, still keeps the lease', async () => {
    // 250 ms on 1 s: longer than a try is given, but each answer says that the lease was renewed.
    const { hold } = world().worker({ ttl: '1s' })
    const { time, driver } = world()
    driver.always('refresh', delay(time, 125, 125))
    const lease = await hold('job')
    await time.advance(60_000)
    expect(lease.isHeld()).toBe(true)
  })

  it('by being locked elsewhere this instant is asked again at once, and then with a waiting statement', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    const lease = await hold('job')
    world().driver.forget()
    world().driver.plan('refresh', answer({ outcome: 'busy' }))
    await world().time.advance(1_000)
    expect(
      world()
        .driver.of('refresh')
        .map(({ call }) => call?.lockedRows),
    ).toEqual(['skip', 'wait'])
    expect(lease.isHeld()).toBe(true)
  })

  it('by being locked elsewhere for long never means lost, until the deadline does', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    const lease = await hold('job')
    world().driver.always('refresh', answer({ outcome: 'busy' }))
    await world().time.advance(2_900)
    expect(lease.isHeld()).toBe(true)
    world().driver.heal()
    await world().time.advance(3_000)
    expect(lease.isHeld()).toBe(true)
  })

  it('of one lease leaves the others alone, in the same batch or not', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    const leases = [await hold('a'), await hold('bad'), await hold('c')]
    world().driver.always('refresh', async (pass, { items }) => {
      const answers = (await pass()) as object[]
      return answers.map((one, index) =>
        items[index]?.key === 'bad' ? { outcome: 'failed', error: new Error('odd') } : one,
      )
    })
    await world().time.advance(10_000)
    expect(leases.map((lease) => lease.isHeld())).toEqual([true, false, true])
  })

  it('of a short lease is not held up by hanging renewals of long ones', async () => {
    const { hold } = world().worker({ requestTimeout: '30s' })
    for (let index = 0; index < 6; index++) await hold(`long ${index}`, { ttl: '10m', heartbeat: '1s' })
    const { time, driver } = world()
    driver.always('refresh', (pass, { items }) =>
      items.some(({ key }) => key?.startsWith('long') === true)
        ? hang(pass, { verb: 'refresh', items, call: undefined })
        : pass(),
    )
    await time.advance(5_000)
    const short = await hold('short', { ttl: '500ms' })
    await time.advance(20_000)
    expect(short.isHeld()).toBe(true)
  })
})

describe('a lost lease', () => {
  it.each([true, false])(
    'whose record was deleted is known before the lease would have ended, heartbeat or not: %s (N3)',
    async (heartbeat) => {
      const [one, other] = [world().worker(), world().worker()]
      const lease = await one.hold('job', { ttl: '1.5s', heartbeat })
      let abortedAt = NaN
      lease.signal.addEventListener('abort', () => (abortedAt = world().time.now))
      await world().until(other.locks.forceRelease('job', { immediate: true }))
      await world().time.advance(2_000)
      expect(abortedAt).toBeLessThan(1_500 - 15)
    },
  )

  it('is told apart by its fence: a late write of the old holder is refused (M9)', async () => {
    const [one, other] = [world().worker({ ttl: '1s' }), world().worker()]
    const stale = await one.hold('job')
    world().driver.always('refresh', hang)
    const successor = await world().until(other.locks.acquire('job', { wait: '10s' }))
    let newest = 0
    const write = (fence: number) => fence >= newest && (newest = fence) > 0
    expect(write(successor?.fence ?? NaN)).toBe(true)
    expect(write(stale.fence)).toBe(false)
  })

  it('is never renewed back into being: the store forgets it, and the refresh finds nothing (N21, M7)', async () => {
    const [one, other] = [world().worker({ ttl: '1s' }), world().worker()]
    const lease = await one.hold('job')
    await world().until(other.locks.forceRelease('job', { immediate: true }))
    const successor = await other.hold('job')
    await world().until(successor.release())
    await world().time.advance(5_000)
    expect(lease.isHeld()).toBe(false)
    expect(lease.lossReason).toBe('gone')
    expect(await world().until(one.locks.peek('job'))).toBeNull()
    expect(world().driver.of('acquire')).toHaveLength(2)
  })

  it('stays lost when a refresh from before the loss is answered "held" after it (M28)', async () => {
    const { clock, hold } = world().worker({ ttl: '10s' })
    const lease = await hold('job')
    const late = gate()
    world().driver.plan('refresh', late.after)
    await world().time.advance(3_400)
    clock.stepWall(60_000)
    expect(lease.isHeld()).toBe(false)
    clock.stepWall(-60_000)
    late.letGo()
    await rest()
    expect(lease.isHeld()).toBe(false)
    expect(lease.signal.aborted).toBe(true)
    expect(lease.lossReason).toBe('expired')
    await world().time.advance(60_000)
    expect(lease.isHeld()).toBe(false)
  })

  it('is told once, however many renewals are in the air, and no rejection goes unhandled (N4, N20)', async () => {
    const { hold } = world().worker({ ttl: '1s' })
    const lease = await hold('job')
    let aborts = 0
    lease.signal.addEventListener('abort', () => aborts++)
    world().driver.always('refresh', () => Promise.reject(new Error('ECONNRESET')))
    await world().time.advance(10_000)
    expect(aborts).toBe(1)
    expect(() => lease.assertHeld()).toThrow(LeaseLostError)
    expect(() => lease.signal.throwIfAborted()).toThrow(LeaseLostError)
    expect(lease.remainingMs).toBe(0)
    await expect(lease.extend('10s')).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'expired' })
  })

  it('has no timer and sends nothing any more', async () => {
    const { clock, hold } = world().worker({ ttl: '1s' })
    await hold('job', { heartbeat: false })
    await world().time.advance(1_000)
    world().driver.forget()
    expect(world().time.timers(clock)).toEqual([])
    await world().time.advance(100_000)
    expect(world().driver.count()).toBe(0)
  })

  it('is known to the lease itself before any timer could tell: the process stood still (N23, M17)', async () => {
    const { clock, hold } = world().worker({ ttl: '1s' })
    const lease = await hold('job')
    const { signal } = lease
    let heard = 0
    signal.addEventListener('abort', () => heard++)
    await clock.freeze(5_000)
    // Nothing of this process has run since.
    expect(signal.aborted).toBe(true)
    expect(heard).toBe(1)
    expect(signal.reason).toBeInstanceOf(LeaseLostError)
    expect(lease.isHeld()).toBe(false)
  })

  it.each([
    ['signal.reason', (lease: { signal: AbortSignal }) => lease.signal.reason !== undefined],
    ['isHeld()', (lease: { isHeld(): boolean }) => !lease.isHeld()],
    ['remainingMs', (lease: { remainingMs: number }) => lease.remainingMs === 0],
    ['lossReason', (lease: { lossReason: unknown }) => lease.lossReason === 'expired'],
  ])('is known to %s, whichever is asked first after a pause', async (_name, knows) => {
    const { clock, hold } = world().worker({ ttl: '1s' })
    const lease = await hold('job')
    void lease.signal
    await clock.freeze(5_000)
    expect(knows(lease)).toBe(true)
  })

  it('is known after a suspend of the machine, although the monotonic clock stood still (N57)', async () => {
    const { clock, hold } = world().worker({ ttl: '10s' })
    const lease = await hold('job')
    await world().time.advance(100)
    await clock.suspend(3_600_000)
    expect(lease.isHeld()).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })

  it('that was lost in a pause is not renewed first when the process goes on', async () => {
    const [one, other] = [world().worker({ ttl: '1s' }), world().worker()]
    const lease = await one.hold('job')
    one.clock.frozen = true
    await world().time.advance(1_100)
    await other.hold('job')
    world().driver.forget()
    one.clock.frozen = false
    await world().time.advance(2_000)
    expect(lease.isHeld()).toBe(false)
    expect(
      world()
        .driver.of('refresh')
        .flatMap(({ items }) => items.map(({ token }) => token)),
    ).not.toContain(lease.token)
  })
})
