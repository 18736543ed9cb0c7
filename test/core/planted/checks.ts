import { expect, vi } from 'vitest'
import { answer, cutAnswer, delay, fail, gate, hang } from '../treatments.ts'
import { rest } from '../virtual-time.ts'
import { soFar } from '../world.ts'
import { check, type Check } from './core-under-trial.ts'

const outcomeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => (error as { code?: unknown }).code ?? error)

export const trustBeginsBeforeTheRequest: Check = check(
  'a lease is trusted from before its request was sent, not from its answer',
  async (world) => {
    const [one, other] = [world.worker(), world.worker()]
    world.driver.plan('acquire', delay(world.time, 0, 600))
    const lease = await one.hold('job', { ttl: '1s', heartbeat: false })
    await world.until(other.locks.acquire('job', { wait: '10s' }))
    expect(lease.isHeld()).toBe(false)
  },
)

export const trustIsWhatTheStoreSaid: Check = check(
  'a lease is trusted for what the store said remains, not for the ttl that was asked for',
  async (world) => {
    const [one, other] = [world.worker({ requestTimeout: '1s' }), world.worker()]
    // Asked again after that, it is granted a minute only.
    world.driver.plan('acquire', fail('unknown'))
    world.driver.always('refresh', hang)
    const lease = await world.until(one.locks.acquire('job', { ttl: '10m', wait: '5s' }))
    await world.until(other.locks.acquire('job', { wait: '20m' }), 1_200_000)
    expect(lease?.isHeld()).toBe(false)
  },
)

export const anOlderAnswerMovesNothing: Check = check(
  'an older answer that comes in later does not shorten the trust',
  async (world) => {
    const { hold } = world.worker({ ttl: '3s' })
    const lease = await hold('job')
    // The first renewal is given up and answered late; a second one was confirmed meanwhile.
    world.driver.plan('refresh', delay(world.time, 0, 1_500))
    await world.time.advance(2_000)
    const before = lease.remainingMs
    await world.time.advance(600)
    expect(lease.remainingMs).toBeGreaterThanOrEqual(before - 600)
  },
)

export const aLossIsFinal: Check = check(
  'a loss is final, whatever is answered afterwards',
  async (world) => {
    const { clock, hold } = world.worker({ ttl: '10s' })
    const lease = await hold('job')
    const late = gate()
    world.driver.plan('refresh', late.after)
    await world.time.advance(3_400)
    clock.stepWall(60_000)
    expect(lease.isHeld()).toBe(false)
    clock.stepWall(-60_000)
    late.letGo()
    await rest()
    expect(lease.isHeld()).toBe(false)
    await world.time.advance(10_000)
    expect(lease.isHeld()).toBe(false)
  },
)

export const aKeyIsOnceInABatch: Check = check(
  'a key is in a batch once, so that a store which matches answers by key alone grants it once',
  async (world) => {
    const { locks } = world.worker()
    world.driver.always('acquire', async (pass, { items }) => {
      const answers = (await pass()) as object[]
      return items.map((item) => answers[items.findIndex(({ key }) => key === item.key)])
    })
    // One that waits and one that does not: neither shares the other's try.
    const calls = [outcomeOf(locks.acquire('job', { wait: 10 })), outcomeOf(locks.acquire('job'))]
    const leases = await world.until(Promise.all(calls))
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1)
  },
)

export const anAbandonedTokenIsReleased: Check = check(
  'the token of an acquire that was given up is released whenever the call is carried out after all',
  async (world) => {
    const [one, other] = [world.worker({ requestTimeout: '1s' }), world.worker()]
    const late = gate()
    world.driver.plan('acquire', late.before)
    await world.until(outcomeOf(one.locks.acquire('job', { ttl: '24h' })))
    await world.time.advance(30_000)
    late.letGo()
    await world.time.advance(100)
    expect(await world.until(other.locks.acquire('job'))).not.toBeNull()
  },
)

export const anAbandonedTokenIsReleasedAgain: Check = check(
  'the token of an acquire whose connection was cut is released once more, if a client library sends it again',
  async (world) => {
    const [one, other] = [world.worker({ requestTimeout: '1s' }), world.worker()]
    let resend = (): Promise<unknown> => Promise.resolve()
    world.driver.plan('acquire', (pass) => {
      resend = pass
      return Promise.reject(new Error('ECONNRESET'))
    })
    await world.until(outcomeOf(one.locks.acquire('job', { ttl: '24h' })))
    await world.time.advance(500)
    await world.until((await other.hold('job')).release())
    await resend()
    await world.time.advance(1_000)
    expect(await world.until(other.locks.acquire('job'))).not.toBeNull()
  },
)

export const busyIsNotLost: Check = check(
  'a renewal of a record that is locked elsewhere is no loss',
  async (world) => {
    const { hold } = world.worker({ ttl: '3s' })
    const lease = await hold('job')
    world.driver.plan('refresh', answer({ outcome: 'busy' }))
    await world.time.advance(5_000)
    expect(lease.isHeld()).toBe(true)
  },
)

export const busyIsNotHeld: Check = check(
  'a record that is locked elsewhere is not held by another',
  async (world) => {
    const { locks } = world.worker()
    world.driver.plan('acquire', answer({ outcome: 'busy' }))
    expect(await world.until(locks.acquire('job'))).not.toBeNull()
  },
)

export const noWakeUpIsSleptThrough: Check = check(
  'a release while a try is in the air is not slept through',
  async (world) => {
    const [one, other] = [world.worker(), world.worker()]
    const lease = await one.hold('job')
    const waiting = other.locks.acquire('job', { wait: '60s' })
    await world.time.advance(1_000)
    const slow = gate()
    world.driver.plan('acquire', slow.after)
    await world.time.advance(6_000)
    await world.until(lease.release())
    slow.letGo()
    await world.time.advance(20)
    expect(await soFar(waiting)).not.toBe('pending')
  },
)

export const aSubscriptionIsFollowedByALook: Check = check(
  'a release before the subscription was confirmed is not slept through',
  async (world) => {
    const [one, other] = [world.worker(), world.worker()]
    const lease = await one.hold('job')
    world.driver.plan('listen', delay(world.time, 200))
    const waiting = other.locks.acquire('job', { wait: '60s', waitStep: '30s' })
    await world.time.advance(100)
    void lease.release()
    await world.time.advance(1_000)
    expect(await soFar(waiting)).not.toBe('pending')
  },
)

export const timersGoTheDistance: Check = {
  sentence: 'a timer of forty days fires after forty days, once',
  run: async ({ systemClock }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
    try {
      let fired = 0
      const timer = systemClock.setTimer(40 * 86_400_000, () => fired++)
      await vi.advanceTimersByTimeAsync(39.9 * 86_400_000)
      expect(fired).toBe(0)
      await vi.advanceTimersByTimeAsync(0.2 * 86_400_000)
      expect(fired).toBe(1)
      timer.cancel()
    } finally {
      vi.useRealTimers()
    }
  },
}

export const theSignalKnowsAtOnce: Check = check(
  "a lease's own signal knows of the loss before any timer has fired",
  async (world) => {
    const { clock, hold } = world.worker({ ttl: '1s' })
    const [one, other] = [await hold('a'), await hold('b')]
    const [first, second] = [one.signal, other.signal]
    clock.frozen = true
    await world.time.advance(5_000)
    expect(first.aborted).toBe(true)
    expect(() => second.throwIfAborted()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }))
    clock.frozen = false
  },
)

export const aReleaseNeverThrows: Check = check('a release never throws', async (world) => {
  const { hold } = world.worker({ requestTimeout: '1s' })
  const lease = await hold('job')
  world.driver.always('release', fail('not-sent'))
  expect(await world.until(outcomeOf(lease.release()))).toBe('unknown')
})

export const theResultIsNotReplaced: Check = check(
  "neither a function's value nor its error is replaced by what the release does",
  async (world) => {
    const { locks } = world.worker({ requestTimeout: '1s' })
    world.driver.always('release', fail('not-sent'))
    expect(await world.until(outcomeOf(locks.runExclusive('a', () => 'value')))).toMatchObject({
      result: 'value',
    })
    const mine = new Error('mine')
    expect(await world.until(outcomeOf(locks.runExclusive('b', () => Promise.reject(mine))))).toBe(mine)
  },
)

export const aFenceNeverGoesBack: Check = check('a fence that goes back is refused', async (world) => {
  const { locks, hold } = world.worker()
  world.driver.plan(
    'acquire',
    answer({ outcome: 'granted', fence: 7, remainingMs: 30_000 }),
    answer({ outcome: 'granted', fence: 6, remainingMs: 30_000 }),
  )
  await hold('job')
  expect(await world.until(outcomeOf(locks.acquire('job')))).toBe('FENCE_UNSAFE')
})

export const aStoreThatIsDownIsNoAnswer: Check = check(
  'a store that is down is an exception, never null',
  async (world) => {
    const { locks } = world.worker({ requestTimeout: '1s' })
    for (const treatment of [fail('not-sent'), fail('unknown'), hang]) {
      world.driver.always('everything', treatment)
      expect(await world.until(outcomeOf(locks.acquire('job')))).toBe('STORE_UNAVAILABLE')
      expect(await world.until(outcomeOf(locks.acquire('job', { wait: '3s' })))).toBe('STORE_UNAVAILABLE')
    }
  },
)

export const anOutstandingAnswerIsNoAnswer: Check = check(
  'a wait that ends while an answer is outstanding does not end with null',
  async (world) => {
    const { locks } = world.worker({ requestTimeout: '2s' })
    world.driver.always('everything', hang)
    const waits = [500, 900].map((wait) => outcomeOf(locks.acquire('job', { wait })))
    expect(await world.until(Promise.all(waits))).toEqual(['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
  },
)

export const oneFailedRenewalIsNoLoss: Check = check('one renewal that fails is no loss', async (world) => {
  const { hold } = world.worker({ ttl: '3s' })
  const lease = await hold('job')
  world.driver.plan('refresh', cutAnswer)
  await world.time.advance(5_000)
  expect(lease.isHeld()).toBe(true)
})

export const slowAnswersCount: Check = check(
  'renewals that are confirmed slowly are confirmed',
  async (world) => {
    const { hold } = world.worker({ ttl: '1s' })
    world.driver.always('refresh', delay(world.time, 125, 125))
    const lease = await hold('job')
    await world.time.advance(10_000)
    expect(lease.isHeld()).toBe(true)
  },
)

export const theWallClockCounts: Check = check(
  'a suspended machine knows afterwards that its lease is lost',
  async (world) => {
    const { clock, hold } = world.worker({ ttl: '10s' })
    const lease = await hold('job')
    await clock.suspend(60_000)
    expect(lease.isHeld()).toBe(false)
  },
)

export const theMonotonicClockCounts: Check = check(
  'a wall clock that is set back prolongs no trust',
  async (world) => {
    const { clock, hold } = world.worker({ ttl: '1s' })
    const lease = await hold('job', { heartbeat: false })
    clock.stepWall(-3_600_000)
    await world.time.advance(1_000)
    expect(lease.isHeld()).toBe(false)
  },
)

export const theLossComesFirst: Check = check(
  'the loss is signalled before the store can grant the key to another, renewed or not',
  async (world) => {
    const [one, other] = [world.worker({ ttl: '4s', requestTimeout: '60s' }), world.worker()]
    const aborts = new Map<string, number>()
    for (const [key, heartbeat] of [
      ['renewed', true],
      ['not renewed', false],
    ] as const) {
      const lease = await one.hold(key, { heartbeat })
      lease.signal.addEventListener('abort', () => aborts.set(key, world.time.now))
    }
    world.driver.always('refresh', hang)
    for (const key of ['renewed', 'not renewed']) {
      await world.until(other.locks.acquire(key, { wait: '60s' }))
      expect(aborts.get(key) ?? Infinity).toBeLessThan(world.time.now)
    }
  },
)

export const nothingIsLeft: Check = check('a closed service leaves no timer', async (world) => {
  const { clock, locks, hold } = world.worker()
  await hold('job')
  await world.until(locks.close())
  expect(world.time.timers(clock)).toEqual([])
})

export const aLifetimeEnds: Check = check('a lease ends with its maximum lifetime', async (world) => {
  const { hold } = world.worker({ ttl: '2s', maxLifetime: '10s' })
  const lease = await hold('job')
  await world.time.advance(12_000)
  expect(lease.isHeld()).toBe(false)
})

export const oneWaiterPerKey: Check = check(
  'a hundred waiters of a key in one process are one waiter for the store',
  async (world) => {
    const { locks, hold } = world.worker()
    await hold('job')
    world.driver.forget()
    const waits = Array.from({ length: 100 }, () => locks.acquire('job', { wait: '3s' }))
    await world.time.advance(2_000)
    expect(world.driver.count('acquire')).toBeLessThanOrEqual(3)
    await world.until(Promise.all(waits))
  },
)

export const aRetryHasItsOwnWay: Check = check(
  'the renewal of a short lease is not held up by those of long ones that hang',
  async (world) => {
    const { hold } = world.worker({ requestTimeout: '30s' })
    for (let index = 0; index < 6; index++) {
      await hold(`long ${index}`, { ttl: '10m', heartbeat: '1s' })
      await world.time.advance(150)
    }
    world.driver.always('refresh', (pass, seen) =>
      seen.items.some(({ key }) => key?.startsWith('long') === true) ? hang(pass, seen) : pass(),
    )
    await world.time.advance(5_000)
    const short = await hold('short', { ttl: '500ms' })
    await world.time.advance(20_000)
    expect(short.isHeld()).toBe(true)
  },
)

export const noChainWaitsForItself: Check = check(
  'a call chain that holds a key does not wait for it',
  async (world) => {
    const { locks } = world.worker()
    const nested = locks.runExclusive('job', () => outcomeOf(locks.acquire('job', { wait: '1s' })))
    expect(await world.until(nested)).toMatchObject({ result: 'REENTRANT_ACQUIRE' })
  },
)

export const chainsAreNotMixed: Check = check(
  'what the shared timers set off does not see the lease of the chain that happened to set them',
  async (world, { currentLease }) => {
    const { locks, hold } = world.worker({ ttl: '1s' })
    const other = await hold('other', { heartbeat: false })
    let seen: string | undefined = 'nothing'
    other.signal.addEventListener('abort', () => (seen = currentLease()?.key))
    const running = locks.runExclusive('job', async () => {
      await locks.acquire('inner', { ttl: 200, heartbeat: 50 })
      await world.time.sleep(2_000)
    })
    await world.until(running)
    expect(seen).toBeUndefined()
  },
)
