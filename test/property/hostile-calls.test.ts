import { types } from 'node:util'
import fc from 'fast-check'
import {
  connect,
  type Lease,
  LeaseholdError,
  LockService,
  onEvent,
  ScheduledTaskStore,
  systemClock,
  TaskScheduler,
} from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { postgresDriver, postgresSchema } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { sqliteDriver, sqliteSchema } from 'leasehold/sqlite'
import { driverContract, FakeClock, faultyDriver, runDriverContract, seededRandom } from 'leasehold/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { watchedDriver } from '../core/watched-driver.ts'
import { fuzz } from './fuzz.ts'
import { hostileArguments, hostileObject, hostileOptions, type Recipe } from './hostile-objects.ts'

/** Calls without the types that would stop them. */
type Loose = (...args: unknown[]) => unknown

const driver = watchedDriver()
let locks: LockService
let tasks: TaskScheduler
let lease: Lease
let store: ScheduledTaskStore

beforeAll(async () => {
  locks = new LockService({ driver })
  tasks = new TaskScheduler({ locks, keepAlive: false })
  store = new ScheduledTaskStore({ locks })
  lease = (await locks.acquire('held')) as Lease
})
afterAll(() => locks.close())

/** What comes of a call: nothing but a typed error, or what was asked for; and what was refused was not begun. */
async function judge(call: () => unknown): Promise<void> {
  const before = driver.calls.length
  let outcome: unknown
  try {
    outcome = await call()
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw new Error('A foreign exception.', { cause: error })
    expect(error.message).toMatch(/\w{3}.*\.$/s)
    expect(error.message.length).toBeLessThan(1_000)
    if (error.code === 'INVALID_OPTION') expect(driver.calls.length, 'nothing was sent').toBe(before)
    return
  }
  if (typeof (outcome as Lease | null)?.release === 'function') await (outcome as Lease).release()
}

const someTtl = { ttl: '30s', heartbeat: '5s', maxLifetime: '1h', waitStep: '1s', requestTimeout: '1s' }
const acquireOptions = { ...someTtl, wait: 0, signal: new AbortController().signal, label: 'label' }
const runOptions = { ...acquireOptions, onLocked: () => {}, onLost: 'return' }
const serviceOptions = {
  ...someTtl,
  driver,
  namespace: 'n',
  retention: '1m',
  clock: systemClock,
  random: Math.random,
}
const schedulerOptions = {
  keepAlive: false,
  controlEvery: '1s',
  logRetention: '1d',
  timeZone: 'UTC',
  ttl: '30s',
}
const taskOptions = {
  cron: '0 2 * * *',
  timeZone: 'UTC',
  every: undefined,
  onCrash: 'retry',
  maxAttempts: 3,
  overlap: 'skip',
  catchUp: 'latest',
  catchUpWindow: '1d',
  startDeadline: '1m',
  ttl: '30s',
}
const noop = (): void => {}
const method = (object: object, name: string): Loose =>
  ((object as Record<string, Loose>)[name] as Loose).bind(object)

/** They are made before there is a service. */
function withLocks(options: unknown): unknown {
  if (typeof options !== 'object' || options === null || types.isProxy(options)) return options
  return Object.isExtensible(options) ? Object.assign(Object.create(options), { locks }) : options
}

type Row = [name: string, examples: fc.Arbitrary<readonly Recipe[]>, call: (...args: unknown[]) => unknown]
let names = 0
/** What a function does is its own affair, here only whether it is taken for one. */
const tame = (args: readonly unknown[]) => args.map((arg) => (typeof arg === 'function' ? noop : arg))

const rows: readonly Row[] = [
  [
    'new LockService',
    hostileArguments(serviceOptions),
    (options) => new LockService(options as never).close(),
  ],
  ['acquire', hostileArguments('key', acquireOptions), (...args) => method(locks, 'acquire')(...args)],
  [
    'runExclusive',
    hostileArguments('key', noop, runOptions),
    (...args) => method(locks, 'runExclusive')(...tame(args)),
  ],
  [
    'runExclusively',
    hostileArguments('key', noop, runOptions),
    (...args) => method(locks, 'runExclusively')(...tame(args)),
  ],
  [
    'exclusive',
    hostileArguments('key', noop, runOptions),
    (...args) => (method(locks, 'exclusive')(...tame(args)) as Loose)(...args),
  ],
  ['peek', hostileArguments({ key: 'key' }), (...args) => method(locks, 'peek')(...args)],
  ['list', hostileArguments({ prefix: 'k', limit: 5 }), (...args) => method(locks, 'list')(...args)],
  [
    'forceRelease',
    hostileArguments({ key: 'key' }, { fence: 5, immediate: true }),
    (...args) => method(locks, 'forceRelease')(...args),
  ],
  ['lease.extend', hostileArguments('1m'), (...args) => method(lease, 'extend')(...args)],
  [
    'new TaskScheduler',
    hostileArguments(schedulerOptions),
    (options) => new TaskScheduler(withLocks(options) as never),
  ],
  [
    'new TaskScheduler, locks',
    hostileArguments({ locks: {} }),
    (options) => new TaskScheduler(options as never),
  ],
  [
    'schedule',
    hostileArguments('task', taskOptions, noop),
    (name, ...args) => method(tasks, 'schedule')(name === 'task' ? `task ${++names}` : name, ...args),
  ],
  ['stop', hostileArguments({ drain: '1s' }), (...args) => method(tasks, 'stop')(...args)],
  ['history', hostileArguments('task', { limit: 5 }), (...args) => method(tasks, 'history')(...args)],
  ...['pause', 'resume', 'cancel'].map((verb): Row => [
    verb,
    hostileArguments('task', { by: 'me', requestId: '1', ...(verb === 'cancel' ? { fence: 5 } : {}) }),
    (...args) => method(tasks, verb)(...args),
  ]),
  ['status', hostileArguments('task'), (...args) => method(tasks, 'status')(...args)],
  [
    'new ScheduledTaskStore',
    hostileArguments({ ...schedulerOptions, keepAlive: undefined }),
    (options) => new ScheduledTaskStore(withLocks(options) as never),
  ],
  [
    'run of a ScheduledTaskStore',
    hostileArguments('task', noop, {
      slot: 5_000,
      cron: '@daily',
      timeZone: 'UTC',
      startDeadline: 0,
      ttl: '1s',
    }),
    (...args) => method(store, 'run')(...tame(args)),
  ],
  [
    'announce',
    hostileArguments('task', { cron: '@daily', timeZone: 'UTC' }),
    (...args) => method(store, 'announce')(...args),
  ],
  [
    'guard',
    hostileArguments('task', noop, { slot: 5_000, cron: '@daily', startDeadline: 0 }),
    (...args) => (method(store, 'guard')(...tame(args)) as Loose)(...args),
  ],
  [
    'memoryDriver',
    hostileArguments({ store: 'fuzzed', now: Date.now }),
    (...args) => (memoryDriver as Loose)(...args),
  ],
  [
    'sqliteDriver',
    hostileArguments({ path: ':memory:', tablePrefix: 'p_', createTables: true, database: undefined }),
    (...args) => (sqliteDriver as Loose)(...args),
  ],
  ['sqliteSchema', hostileArguments({ tablePrefix: 'p_' }), (...args) => (sqliteSchema as Loose)(...args)],
  [
    'postgresDriver',
    hostileArguments(
      { query: async () => [] },
      { schema: 's', tablePrefix: 'p_', createTables: true, listen: true, namedStatements: false },
    ),
    (...args) => (postgresDriver as Loose)(...args),
  ],
  [
    'postgresSchema',
    hostileArguments({ schema: 's', tablePrefix: 'p' }),
    (...args) => (postgresSchema as Loose)(...args),
  ],
  [
    'redisDriver',
    hostileArguments(
      { status: 'ready', call: noop, duplicate: noop, subscribe: noop },
      { prefix: 'p', retention: 5_000, push: true, subscriber: noop, retryConnection: true },
    ),
    (...args) => (redisDriver as Loose)(...args),
  ],
  [
    'onEvent',
    hostileArguments('leasehold:lost', noop),
    (...args) => ((onEvent as Loose)(...args) as Loose)(),
  ],
]

describe('a public function that is given something hostile', () => {
  it.each(rows)(
    'does what was asked for or refuses with a typed error: %s',
    async (_name, examples, call) => {
      await fuzz(examples, { runs: 300 }, (args) => judge(() => call(...args.map(({ make }) => make()))))
    },
  )

  it('connect', async () => {
    const scheme = fc.constantFrom(
      'memory:',
      'sqlite:',
      'sqlite::memory:',
      'redis://',
      'postgres://',
      'http://',
      'x:',
      '',
    )
    const rest = fc.oneof(
      fc.string(),
      fc.webUrl().map((url) => url.slice(8)),
      fc.constantFrom(
        '%E0%A4%A',
        '%00',
        '127.0.0.1:1/%zz',
        '127.0.0.1:99999',
        '[::1',
        'u:p@h:1:2/',
        '?ttl=5w',
        '?x=1',
      ),
    )
    const unreachable = fc.tuple(scheme, rest).map((parts) => parts.join(''))
    const urls = fc.oneof(
      unreachable.filter(isHarmless).map((url): Recipe => ({ what: url, make: () => url })),
      hostileObject.filter(({ make }) => make() !== undefined),
    )
    const options = hostileOptions({ requestTimeout: 50, client: 'ioredis', namespace: 'n', ttl: '1s' })
    await fuzz(fc.tuple(urls, options), { runs: 150 }, ([url, given]) =>
      judge(async () => {
        const service = await (connect as Loose)(url.make(), given.make())
        await (service as LockService).close()
      }),
    )
  })
})

/** Nobody is asked who may be there, and no file is made. */
function isHarmless(url: string): boolean {
  if (url.startsWith('sqlite:') && url !== 'sqlite::memory:') return url.includes('%') || url.includes('?')
  return !/^(redis|postgres):/.test(url) || /127\.0\.0\.1|\[::1|%|@h:1:2/.test(url)
}

describe('what tests are made with, given something hostile', () => {
  const clockOf = () => new FakeClock()
  const kit: readonly Row[] = [
    [
      'new FakeClock',
      hostileArguments({ wall: 0 }),
      (...args) => Reflect.construct(FakeClock, args) as unknown,
    ],
    ['advance', hostileArguments(5), (...args) => method(clockOf(), 'advance')(...args)],
    ['stepWall', hostileArguments(5), (...args) => method(clockOf(), 'stepWall')(...args)],
    ['stepMonotonic', hostileArguments(5), (...args) => method(clockOf(), 'stepMonotonic')(...args)],
    ['stall', hostileArguments(5), (...args) => method(clockOf(), 'stall')(...args)],
    [
      'setTimer',
      hostileArguments(5, noop, { keepAlive: true }),
      (...args) => method(clockOf(), 'setTimer')(...args),
    ],
    [
      'systemClock.setTimer',
      hostileArguments(5, noop),
      (...args) => (method(systemClock, 'setTimer')(...args) as { cancel(): void }).cancel(),
    ],
    ['seededRandom', hostileArguments(5), (...args) => (seededRandom as Loose)(...args)],
    ['integer', hostileArguments(5), (...args) => method(seededRandom(1), 'integer')(...args)],
    ['pick', hostileArguments([1]), (...args) => method(seededRandom(1), 'pick')(...args)],
    ['faultyDriver', hostileArguments(driver), (...args) => (faultyDriver as Loose)(...args)],
    [
      'faults.next',
      hostileArguments('acquire'),
      (...args) => method(faultyDriver(driver).faults, 'next')(...args),
    ],
    [
      'driverContract',
      hostileArguments({ name: 'x', expects: {}, open: noop }, { seeds: [1] }),
      (...args) => (driverContract as Loose)(...args),
    ],
    [
      'runDriverContract',
      hostileArguments(
        { name: 'x', expects: {}, open: noop },
        { describe: noop, it: noop, afterAll: noop },
        { seeds: [1] },
      ),
      (...args) => (runDriverContract as Loose)(...args),
    ],
  ]
  it.each(kit)('does what was asked for or refuses with a typed error: %s', async (_name, examples, call) => {
    await fuzz(examples, { runs: 200 }, (args) => judge(() => call(...args.map(({ make }) => make()))))
  })
})
