import {
  DuplicateTaskError,
  InvalidOptionError,
  LockService,
  type TaskOptions,
  TaskScheduler,
} from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { afterAll, describe, expect, it } from 'vitest'

const locks = new LockService({ driver: memoryDriver({ store: 'options' }) })
afterAll(() => locks.close())
const nothing = (): void => {}

describe('an option of a task', () => {
  it.each<[string, object]>([
    ['cron', {}],
    ['every', { cron: '* * * * *', every: '5s' }],
    ['cron', { cron: 5 }],
    ['cron', { cron: '0 0 31 2 *' }],
    ['timeZone', { cron: '0 2 * * *', timeZone: 'Europe/Nowhere' }],
    ['timeZone', { every: '5s', timeZone: 'Europe/Paris' }],
    ['every', { every: 0 }],
    ['every', { every: '99ms' }],
    ['every', { every: '366d' }],
    ['every', { every: '5 minutes' }],
    ['every', { every: Number.NaN }],
    ['onCrash', { every: '5s', onCrash: 'rerun' }],
    ['maxAttempts', { every: '5s', maxAttempts: 3 }],
    ['maxAttempts', { every: '5s', onCrash: 'retry', maxAttempts: 1 }],
    ['maxAttempts', { every: '5s', onCrash: 'retry', maxAttempts: 2.5 }],
    ['overlap', { every: '5s', overlap: 'parallel' }],
    ['overlap', { every: '5s', overlap: 'skip', catchUp: 'all' }],
    ['overlap', { every: '5s', overlap: 'cancel', catchUp: 'all' }],
    ['overlap', { every: '5s', overlap: 'allow', catchUp: 'all' }],
    ['maxOverlap', { every: '5s', maxOverlap: 3 }],
    ['maxOverlap', { every: '5s', overlap: 'allow', maxOverlap: 1 }],
    ['maxOverlap', { every: '5s', overlap: 'allow', maxOverlap: 101 }],
    ['overlap', { every: '5s', overlap: true }],
    ['catchUp', { every: '5s', catchUp: 'every' }],
    ['catchUpMax', { every: '5s', catchUpMax: 5 }],
    ['catchUpMax', { every: '5s', catchUp: 'all', catchUpMax: 0 }],
    ['timeout', { every: '5s', timeout: 0 }],
    ['timeout', { every: '5s', timeout: Infinity }],
    ['jitter', { every: '5s', jitter: -1 }],
    ['lock', { every: '5s', lock: '' }],
    ['lock', { every: '5s', lock: 5 }],
    ['lockWait', { every: '5s', lockWait: '5s' }],
    ['lockWait', { every: '5s', lock: 'l', lockWait: 'long' }],
    ['lockWaitStep', { every: '5s', lockWaitStep: '5s' }],
    ['lockWaitStep', { every: '5s', lock: 'l', lockWaitStep: 0 }],
    ['lockTtl', { every: '5s', lockTtl: '5s' }],
    ['lockTtl', { every: '5s', lock: 'l', lockTtl: '99ms' }],
    ['catchUpWindow', { every: '5s', catchUp: 'none', catchUpWindow: '1h' }],
    ['catchUpWindow', { every: '5s', catchUpWindow: -1 }],
    ['startDeadline', { every: '5s', startDeadline: 'soon' }],
    ['ttl', { every: '5s', ttl: '99ms' }],
    ['heartbeat', { every: '5s', ttl: '1s', heartbeat: '1s' }],
    ['maxLifetime', { every: '5s', ttl: '1m', maxLifetime: '30s' }],
    ['timezone', { cron: '0 2 * * *', timezone: 'Europe/Paris' }],
    ['options', null as unknown as object],
  ])('%s is refused in %j, and the error names it', (option, options) => {
    const tasks = new TaskScheduler({ locks })
    const attempt = expect(() => tasks.schedule('task', options as TaskOptions, nothing))
    attempt.toThrow(InvalidOptionError)
    attempt.toThrow(expect.objectContaining({ option, message: expect.stringContaining(option) as string }))
  })

  it('that says undefined is as if it were not there', () => {
    const tasks = new TaskScheduler({ locks, ttl: undefined, timeZone: undefined })
    tasks.schedule('a', { cron: '0 2 * * *', every: undefined, timeZone: undefined, ttl: undefined }, nothing)
    tasks.schedule('b', { every: '5s', cron: undefined, onCrash: undefined, maxAttempts: undefined }, nothing)
  })
})

describe('a task', () => {
  it.each([undefined, null, 'name', { run: nothing }])('with %j for a handler is refused', (handler) => {
    const tasks = new TaskScheduler({ locks })
    expect(() => tasks.schedule('task', { every: '5s' }, handler as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'handler' }),
    )
  })

  it.each([undefined, null, '', 5, {}])('named %j is refused', (name) => {
    const tasks = new TaskScheduler({ locks })
    expect(() => tasks.schedule(name as never, { every: '5s' }, nothing)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'name' }),
    )
  })

  it('is refused if one of its name is there already, with another cron too (N61)', () => {
    const tasks = new TaskScheduler({ locks })
    tasks.schedule('report', { cron: '0 2 * * *' }, nothing)
    const again = expect(() => tasks.schedule('report', { cron: '0 3 * * *' }, nothing))
    again.toThrow(DuplicateTaskError)
    again.toThrow(expect.objectContaining({ code: 'DUPLICATE_TASK', task: 'report' }))
    // One that was refused took no name.
    expect(() => tasks.schedule('other', { cron: 'bad' }, nothing)).toThrow(InvalidOptionError)
    tasks.schedule('other', { cron: '0 3 * * *' }, nothing)
  })
})

describe('an option of a scheduler', () => {
  it.each<[string, object]>([
    ['locks', {}],
    ['locks', { locks: {} }],
    ['locks', { locks: null }],
    ['keepAlive', { locks, keepAlive: 'yes' }],
    ['controlEvery', { locks, controlEvery: 50 }],
    ['logRetention', { locks, logRetention: '59s' }],
    ['logRetention', { locks, logRetention: Infinity }],
    ['logRetention', { locks, logRetention: 'a month' }],
    ['timeZone', { locks, timeZone: 'Mars/Olympus' }],
    ['ttl', { locks, ttl: 0 }],
    ['heartbeat', { locks, heartbeat: 'often' }],
    ['timers', { locks, timers: 1 }],
  ])('%s is refused when the scheduler is made', (option, options) => {
    expect(() => new TaskScheduler(options as { locks: LockService })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option }),
    )
  })
})

describe('options of calls', () => {
  it.each([{ drain: -1 }, { drain: 'long' }, { drian: '5s' }])('stop refuses %j', async (options) => {
    const tasks = new TaskScheduler({ locks })
    await expect(tasks.stop(options as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it.each([{ limit: 0 }, { limit: 1.5 }, { limit: 1e9 }, { form: 1 }])(
    'history refuses %j',
    async (options) => {
      const tasks = new TaskScheduler({ locks })
      await expect(tasks.history('task', options as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    },
  )
})
