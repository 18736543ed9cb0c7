import fc from 'fast-check'
import { InvalidOptionError, LockService } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hostileValue } from './hostile-values.ts'
import { watchedDriver, type WatchedDriver } from './watched-driver.ts'

/** Calls without the types that would stop them. */
type Loose = (...args: unknown[]) => unknown

let driver: WatchedDriver
let locks: LockService

beforeEach(() => {
  driver = watchedDriver()
  locks = new LockService({ driver })
})

afterEach(() => locks.close())

const loose = (
  name: 'acquire' | 'runExclusive' | 'runExclusively' | 'exclusive' | 'peek' | 'list' | 'forceRelease',
) => (locks[name] as Loose).bind(locks)
const construct: Loose = (options) => new LockService(options as never)

/** What is thrown or rejected. Fails if it is nothing, or if the driver heard of the call. */
async function refusal(action: () => unknown): Promise<unknown> {
  let result: unknown
  try {
    result = await action()
  } catch (error) {
    expect(driver.calls, 'nothing is sent before the input was checked').toEqual([])
    return error
  }
  throw new Error(`It was accepted, and gave ${typeof result}.`)
}

async function refusedOption(action: () => unknown): Promise<string> {
  const error = await refusal(action)
  expect(error).toBeInstanceOf(InvalidOptionError)
  const { code, option, message } = error as InvalidOptionError
  expect(code).toBe('INVALID_OPTION')
  expect(message).not.toBe('')
  return option
}

const isValidDuration = (value: unknown, min: number, max: number) => {
  if (typeof value === 'number') return value >= min && value <= max
  return typeof value === 'string' && /^\s*\d+(\.\d+)?(ms|s|m|h|d)\s*$/.test(value)
}

describe('a bad option is refused by its name before anything is sent', () => {
  const durations = ['ttl', 'wait', 'waitStep', 'requestTimeout', 'maxLifetime', 'heartbeat'] as const

  it.each(durations)('%s of acquire, runExclusive, runExclusively and exclusive', async (name) => {
    for (const value of [-1, NaN, '5', '5w', '', {}, null, 5n, -Infinity]) {
      const options = { [name]: value }
      expect(await refusedOption(() => loose('acquire')('key', options))).toBe(name)
      expect(await refusedOption(() => loose('runExclusive')('key', () => {}, options))).toBe(name)
      expect(await refusedOption(() => loose('runExclusively')('key', () => {}, options))).toBe(name)
      expect(await refusedOption(() => loose('exclusive')('key', () => {}, options))).toBe(name)
    }
  })

  it.each(durations.filter((name) => name !== 'wait'))('%s of the service', async (name) => {
    for (const value of [-1, NaN, '5', '5w', '', {}, null, 5n, -Infinity]) {
      expect(await refusedOption(() => construct({ driver, [name]: value }))).toBe(name)
    }
  })

  it.each([
    ['ttl', 0],
    ['ttl', 99],
    ['ttl', '366d'],
    ['ttl', Infinity],
    ['waitStep', 0],
    ['waitStep', '61m'],
    ['waitStep', Infinity],
    ['requestTimeout', 0],
    ['requestTimeout', 9],
    ['requestTimeout', '61m'],
    ['requestTimeout', Infinity],
    ['maxLifetime', 0],
    ['maxLifetime', '29s'],
    ['maxLifetime', '366d'],
    ['maxLifetime', Infinity],
    ['heartbeat', 0],
    ['heartbeat', 9],
    ['heartbeat', '30s'],
    ['heartbeat', '29.5s'],
    ['heartbeat', Infinity],
  ])('%s out of its range: %s', async (name, value) => {
    expect(await refusedOption(() => loose('acquire')('key', { [name]: value }))).toBe(name)
    expect(await refusedOption(() => construct({ driver, [name]: value }))).toBe(name)
  })

  it('a ttl that is shorter than the store can keep', async () => {
    const coarse = watchedDriver({ abilities: { minTtlMs: 2_000 } })
    expect(await refusedOption(() => construct({ driver: coarse, ttl: '1s' }))).toBe('ttl')
    await using service = new LockService({ driver: coarse })
    expect(await refusedOption(() => service.acquire('key', { ttl: '1s' }))).toBe('ttl')
  })

  it('a key that is no text, or empty, in every call that takes one', async () => {
    for (const key of [undefined, null, '', 5, {}, ['key'], Symbol('key'), () => 'key']) {
      expect(await refusedOption(() => loose('acquire')(key))).toBe('key')
      expect(await refusedOption(() => loose('runExclusive')(key, () => {}))).toBe('key')
      expect(await refusedOption(() => loose('runExclusively')(key, () => {}))).toBe('key')
      expect(await refusedOption(() => loose('exclusive')(key, () => {}))).toBe('key')
      expect(await refusedOption(() => loose('peek')(key))).toBe('key')
      expect(await refusedOption(() => loose('forceRelease')(key))).toBe('key')
      expect(await refusedOption(() => loose('forceRelease')(key, { fence: 5 }))).toBe('key')
    }
  })

  it('a function that is none', async () => {
    for (const fn of [undefined, null, 'work', {}, Promise.resolve()]) {
      expect(await refusedOption(() => loose('runExclusive')('key', fn))).toBe('fn')
      expect(await refusedOption(() => loose('runExclusively')('key', fn))).toBe('fn')
      expect(await refusedOption(() => loose('exclusive')('key', fn))).toBe('fn')
    }
  })

  it('signal, label, onLocked, onLost', async () => {
    for (const signal of [5, {}, 'signal', new AbortController(), { aborted: true }]) {
      expect(await refusedOption(() => loose('acquire')('key', { signal }))).toBe('signal')
    }
    for (const label of [5, {}, 'x'.repeat(201)]) {
      expect(await refusedOption(() => loose('acquire')('key', { label }))).toBe('label')
    }
    for (const onLocked of [null, 5, {}, 'skip']) {
      expect(await refusedOption(() => loose('runExclusive')('key', () => {}, { onLocked }))).toBe('onLocked')
    }
    const circular: Record<string, unknown> = {}
    circular['itself'] = circular
    for (const onLost of [null, 5n, circular, 'ignore', () => {}]) {
      expect(await refusedOption(() => loose('runExclusive')('key', () => {}, { onLost }))).toBe('onLost')
      expect(await refusedOption(() => loose('exclusive')('key', () => {}, { onLost }))).toBe('onLost')
    }
  })

  it('namespace, retention, driver, clock and random of the service', async () => {
    for (const namespace of [null, '', 5, {}]) {
      expect(await refusedOption(() => construct({ driver, namespace }))).toBe('namespace')
    }
    for (const retention of [-1, '25h', '5', null, {}]) {
      expect(await refusedOption(() => construct({ driver, retention }))).toBe('retention')
    }
    for (const bad of [5, 'redis', {}, () => driver, { open: 'yes' }, { open: () => {} }]) {
      expect(await refusedOption(() => construct({ driver: bad }))).toBe('driver')
    }
    for (const clock of [null, 5, {}, Date, { monotonic: () => 0, wall: () => 0 }]) {
      expect(await refusedOption(() => construct({ driver, clock }))).toBe('clock')
    }
    for (const random of [null, 0.5, {}, Math]) {
      expect(await refusedOption(() => construct({ driver, random }))).toBe('random')
    }
  })

  it('prefix and limit of list, fence and immediate of forceRelease', async () => {
    for (const prefix of [null, 5, {}, ['a']]) {
      expect(await refusedOption(() => loose('list')({ prefix }))).toBe('prefix')
    }
    for (const limit of [null, 0, -1, 1.5, NaN, '5', Infinity, 1_000_001]) {
      expect(await refusedOption(() => loose('list')({ limit }))).toBe('limit')
    }
    for (const fence of [null, '5', 1.5, NaN, 2 ** 53, Infinity, {}]) {
      expect(await refusedOption(() => loose('forceRelease')('key', { fence }))).toBe('fence')
    }
    for (const immediate of [null, 'no', 0, {}]) {
      expect(await refusedOption(() => loose('forceRelease')('key', { immediate }))).toBe('immediate')
    }
  })

  it('an option that does not exist, so that a misspelt one is not silently ignored', async () => {
    expect(await refusedOption(() => loose('acquire')('key', { tll: '5s' }))).toBe('tll')
    expect(await refusedOption(() => loose('acquire')('key', { onLost: 'reject' }))).toBe('onLost')
    expect(await refusedOption(() => loose('runExclusive')('key', () => {}, { timeout: 5 }))).toBe('timeout')
    expect(await refusedOption(() => loose('exclusive')('key', () => {}, { timeout: 5 }))).toBe('timeout')
    expect(await refusedOption(() => loose('list')({ prefx: 'a' }))).toBe('prefx')
    expect(await refusedOption(() => loose('forceRelease')('key', { force: true }))).toBe('force')
    expect(await refusedOption(() => construct({ driver, wait: '5s' }))).toBe('wait')
    expect(await refusedOption(() => loose('acquire')('key', { __proto__: null, constructor: 5 }))).toBe(
      'constructor',
    )
  })

  it('options that are no object', async () => {
    for (const options of [null, 5, 'ttl', () => {}, true, ['5s']]) {
      expect(await refusedOption(() => loose('acquire')('key', options))).toBe('options')
      expect(await refusedOption(() => loose('runExclusive')('key', () => {}, options))).toBe('options')
      expect(await refusedOption(() => loose('exclusive')('key', () => {}, options))).toBe('options')
      expect(await refusedOption(() => loose('list')(options))).toBe('options')
      expect(await refusedOption(() => loose('forceRelease')('key', options))).toBe('options')
      expect(await refusedOption(() => construct(options))).toBe('options')
    }
  })

  it('an extension that is no duration, or too short or long', async () => {
    const lease = await locks.acquire('key')
    if (lease === null) throw new Error('The key is free.')
    driver.forget()
    for (const duration of [undefined, null, 0, 99, -1, NaN, Infinity, '366d', '5', {}]) {
      expect(await refusedOption(() => (lease.extend as Loose).call(lease, duration))).toBe('duration')
    }
  })

  it('whatever the value is: nothing but an InvalidOptionError, and never a call', async () => {
    const names = fc.constantFrom(...durations, 'signal', 'label', 'onLocked', 'onLost')
    await fc.assert(
      fc.asyncProperty(names, hostileValue, async (name, value) => {
        const fine =
          value === undefined ||
          (['signal', 'label'].includes(name) && value === null) ||
          (name === 'label' && typeof value === 'string') ||
          (name === 'onLocked' && typeof value === 'function') ||
          (name === 'heartbeat' && typeof value === 'boolean') ||
          isValidDuration(value, 0, Infinity)
        if (fine) return
        expect(await refusedOption(() => loose('runExclusive')('key', () => {}, { [name]: value }))).toBe(
          name,
        )
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('an option that is given as undefined', () => {
  it('counts as not given, so that options can be passed on', async () => {
    const options = {
      ttl: undefined,
      wait: undefined,
      signal: undefined,
      label: undefined,
      heartbeat: undefined,
    }
    const lease = await locks.acquire('key', options)
    expect(lease?.remainingMs).toBeGreaterThan(29_000)
    await lease?.release()
  })

  it('leaves the default of the service standing', async () => {
    await using service = new LockService({ driver, ttl: '5s' })
    const lease = await service.acquire('key', { ttl: undefined })
    expect(driver.calls.at(-1)?.items[0]?.ttlMs).toBe(5_000)
    await lease?.release()
  })
})

describe('without a driver', () => {
  it('the service of the core says how to get one', async () => {
    const { LockService: CoreLockService } = await import('../../src/core/lock-service.ts')
    for (const options of [{}, { driver: undefined }, { driver: null }]) {
      const error = await refusal(() => new CoreLockService(options as never))
      expect(error).toMatchObject({ code: 'DRIVER_MISSING' })
      expect((error as Error).message).toMatch(/connect\(url\)/)
    }
  })

  it('the public service works within the process', async () => {
    await using service = new LockService()
    await using lease = await service.acquire('in-process only')
    expect(lease?.isHeld()).toBe(true)
    expect(await service.acquire('in-process only')).toBeNull()
  })
})
