import { DriverFault } from 'leasehold'
import { expect } from 'vitest'
import { delay, fail } from '../treatments.ts'
import { check, type Check } from './core-under-trial.ts'

/* Checks about limits: of time, of batches, of what a store can take, of how long anything counts. */

const codeOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: unknown) => (error as { code?: unknown }).code ?? error)

const minute = 60_000
const hour = 60 * minute

export const theSignalIsEarly: Check = check(
  'the loss is signalled before the deadline although timers are late',
  async (world, { LockService }) => {
    const { clock } = world.worker()
    const late = {
      monotonic: () => clock.monotonic(),
      wall: () => clock.wall(),
      setTimer: (...[delayMs, callback, options]: Parameters<typeof clock.setTimer>) =>
        clock.setTimer(delayMs + 5, callback, options),
    }
    const locks = new LockService({ driver: world.driver, clock: late })
    const lease = await world.until(locks.acquire('job', { ttl: '1s', heartbeat: false }))
    const deadline = world.time.now + (lease?.remainingMs ?? NaN)
    let abortedAt = Infinity
    lease?.signal.addEventListener('abort', () => (abortedAt = world.time.now))
    await world.time.advance(2_000)
    await world.until(locks.close())
    expect(abortedAt).toBeLessThan(deadline)
  },
)

export const somebodyLooksAfterASuspend: Check = check(
  'a machine that was suspended past a deadline signals the loss within a second of going on',
  async (world) => {
    const { clock, hold } = world.worker()
    const lease = await hold('job', { ttl: '10m', heartbeat: false })
    let isAborted = false
    lease.signal.addEventListener('abort', () => (isAborted = true))
    await clock.suspend(hour)
    await world.time.advance(1_100)
    expect(isAborted).toBe(true)
  },
)

export const aLateGrantIsNoLease: Check = check(
  'a grant that arrives after its own deadline is no lease, and given back',
  async (world) => {
    const [one, other] = [world.worker(), world.worker()]
    world.driver.plan('acquire', delay(world.time, 0, 1_500))
    expect(await world.until(codeOf(one.locks.acquire('job', { ttl: '500ms' })))).toBe('STORE_UNAVAILABLE')
    expect(await world.until(other.locks.acquire('job'))).not.toBeNull()
  },
)

export const aLongTtlLasts: Check = check('a lease of three days lasts for three days', async (world) => {
  const lease = await world.worker().hold('job', { ttl: '3d', heartbeat: false })
  await world.time.advance(70 * hour)
  expect(lease.isHeld()).toBe(true)
})

export const aBadItemSpoilsNoOther: Check = check(
  'an item that the store cannot take spoils no other call of its batch',
  async (world) => {
    const { locks } = world.worker()
    world.driver.always('acquire', (pass, { items }) =>
      items.some(({ key }) => key === 'bad')
        ? Promise.reject(new DriverFault('bad-item', 'One item cannot be stored.'))
        : pass(),
    )
    const calls = ['a', 'bad', 'c'].map((key) => codeOf(locks.acquire(key)))
    const outcomes = await world.until(Promise.all(calls))
    expect(outcomes).toMatchObject([{ key: 'a' }, 'STORE_UNUSABLE', { key: 'c' }])
  },
)

export const anyKeyIsStorable: Check = check(
  'whatever a key is called, the store gets short text without NUL, and another one for another key',
  async (world) => {
    const { locks } = world.worker()
    const keys = ['short', 'x'.repeat(1_000), '😀'.repeat(100), 'a\u0000b', 'a\ud800', 'a\ud801']
    await world.until(Promise.all(keys.map((key) => locks.acquire(key))))
    const stored = world.driver.of('acquire').flatMap(({ items }) => items.map(({ key = '' }) => key))
    for (const key of stored) {
      expect(Buffer.byteLength(key)).toBeLessThanOrEqual(255)
      expect(key).not.toContain('\u0000')
    }
    expect(new Set(stored.map((key) => Buffer.from(key).toString())).size).toBe(keys.length)
  },
)

export const batchesKeepToTheirLimit: Check = check(
  'no call of a driver has more items than it takes',
  async (world) => {
    const { locks } = world.worker()
    const { maxBatch } = world.driver.abilities
    const keys = Array.from({ length: maxBatch + 500 }, (_, index) => `k${index}`)
    await world.until(Promise.all(keys.map((key) => locks.acquire(key))))
    const sizes = world.driver.of('acquire').map(({ items }) => items.length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBatch)
  },
)

export const aDeadlockIsTriedAgain: Check = check(
  'a call that was certainly not applied is made again, and nobody hears of it',
  async (world) => {
    world.driver.plan('acquire', fail('retry'))
    expect(await world.until(codeOf(world.worker().locks.acquire('job')))).toMatchObject({ key: 'job' })
  },
)

export const detachedWorkIsFree: Check = check(
  'work that outlives its lease may acquire the key again',
  async (world) => {
    const { locks } = world.worker()
    let detached: Promise<unknown> = Promise.resolve()
    const run = locks.runExclusive('job', () => {
      detached = world.time.sleep(1_000).then(() => codeOf(locks.acquire('job')))
    })
    await world.until(run)
    expect(await world.until(detached)).toMatchObject({ key: 'job' })
  },
)

export const releasedRecordsAreForgotten: Check = check(
  'records of released keys are purged after a minute',
  async (world) => {
    const { hold } = world.worker()
    await world.until((await hold('old')).release())
    await world.time.advance(90_000)
    await world.until((await hold('new')).release())
    const purge = world.driver.of('purge').at(-1)?.items[0] as { retentionMs?: number } | undefined
    expect(purge?.retentionMs ?? Infinity).toBeLessThanOrEqual(minute)
  },
)
