import { type Duration, parseDuration, year } from '../core/duration.ts'
import { InvalidOptionError, quoted, requireInteger, requireOption } from '../core/errors.ts'
import {
  type AcquireOptions,
  type LeaseOptions,
  type ResolvedLeaseOptions,
  type ResolvedLockServiceOptions,
  resolveLeaseOptions,
} from '../core/options.ts'
import { readOptions } from '../core/read-options.ts'
import { toStoredKey } from '../core/stored-key.ts'
import { cronSchedule } from './cron-schedule.ts'
import { shownName } from './definition-text.ts'
import { intervalRange, intervalSchedule } from './interval-schedule.ts'
import type { SlotPolicies } from './policies.ts'
import { remembering, type Schedule } from './schedule.ts'

/** A cron on the wall clocks of a time zone. */
export interface CronTiming {
  /**
   * Five fields (minute, hour, day of month, month, day of week), or six with seconds first. Names, `L`, `W`, `#` and
   * nicknames such as `@daily` are understood. Where day of month and day of week are both given, either may match.
   */
  readonly cron: string
  /** IANA name of the zone whose wall clocks count. Default: that of the scheduler, `'UTC'` if it has none. */
  readonly timeZone?: string | undefined
  readonly every?: undefined
}

/** A fixed interval. */
export interface IntervalTiming {
  /**
   * Fires at every multiple of this since 1970-01-01 UTC, so that all nodes and deploys agree on the instants. 100 ms to
   * 365 days.
   */
  readonly every: Duration
  readonly cron?: undefined
  readonly timeZone?: undefined
}

/** Either of the two, before it is sure that it is just one. */
export interface ScheduleTiming {
  readonly cron?: string | undefined
  readonly timeZone?: string | undefined
  readonly every?: Duration | undefined
}

export interface TaskPolicyOptions {
  /**
   * What becomes of a run whose node died or lost its lease in the middle. `'skip'`: at most once; the run is recorded
   * as lost. `'retry'`: at least once; a live node runs the same slot again as the next attempt, as soon as the lease has
   * lapsed. A handler that throws has failed, and is not run again under either. Default `'skip'`.
   */
  readonly onCrash?: 'skip' | 'retry' | undefined
  /** With `onCrash: 'retry'`, how often one slot may be begun in all. Default 3, at least 2, at most 1,000. */
  readonly maxAttempts?: number | undefined
  /**
   * What becomes of a slot that comes due while an earlier one still runs, anywhere in the fleet. `'skip'`: it is skipped,
   * and recorded so. `'queue'`: it waits for the end; of several that came due meanwhile the newest runs, with
   * `catchUp: 'all'` all of them. `'cancel'`: likewise, and the earlier run is asked to stop. `'allow'`: it runs beside it, on
   * any node, up to `maxOverlap` at a time. Default `'skip'`, with `catchUp: 'all'` it is `'queue'`, the only one possible.
   */
  readonly overlap?: 'skip' | 'queue' | 'cancel' | 'allow' | undefined
  /**
   * With `overlap: 'allow'`, how many runs of the task there may be at a time in the whole fleet; a slot that finds so many is
   * missed (`overlap`). The same on all nodes. Default 10, 2 to 100.
   */
  readonly maxOverlap?: number | undefined
  /**
   * What becomes of slots that came due while no node was there. `'latest'`: the newest of them runs, once, if it is not
   * older than `catchUpWindow`. `'all'`: each that is not older runs, one after the other, the oldest first. `'none'`: none
   * of them. Slots that don't run are recorded as missed. Default `'latest'`.
   */
  readonly catchUp?: 'none' | 'latest' | 'all' | undefined
  /** Unless `catchUp: 'none'`, how old a slot may be and still run. Default: `'24h'`, or the schedule's period if longer. */
  readonly catchUpWindow?: Duration | undefined
  /** With `catchUp: 'all'`, the most slots that may wait to be run; older ones are missed. Default 100, 1 to 1,000. */
  readonly catchUpMax?: number | undefined
  /**
   * How late a slot may be claimed without counting as missed. Matters with `catchUp: 'none'`: a shorter one drops slots
   * when nodes are slow, a longer one runs them late after an outage. Default 60 s; a slot never runs once the next one
   * is due.
   */
  readonly startDeadline?: Duration | undefined
  /**
   * How long one run may take. Then its signal aborts with a `RunStoppedError`; if its handler does not return it counts
   * as abandoned a second later, and the task goes on. A run that was cut off is not repeated. Default: no limit but
   * `maxLifetime`; at least 1 ms, at most 365 days.
   */
  readonly timeout?: Duration | undefined
  /**
   * Each slot is begun later by a part of this, which its name and the task's decide: tasks that are due together are
   * spread, the same way on all nodes, and never beyond their next slot. Default 0, at most 24 h.
   */
  readonly jitter?: Duration | undefined
  /**
   * The key of a lock that a run holds as well: one that other tasks or other code of the fleet share. Taken after the
   * slot was claimed; if another holds it, the slot is skipped (`lock`).
   */
  readonly lock?: string | undefined
  /** With `lock`, how long to wait for it. Default 0: skip at once. `Infinity` waits as long as it takes. */
  readonly lockWait?: Duration | undefined
  /** With `lockWait`, how often to look where the store cannot wake a waiter. Default 100 ms, at least 1 ms, at most 1 h. */
  readonly lockWaitStep?: Duration | undefined
  /** With `lock`, its ttl; it is renewed while the handler runs. Default `'60s'`, as of a lease. */
  readonly lockTtl?: Duration | undefined
}

/** When a task fires and under which rules. The ttl says how soon a crashed run is noticed; default 30 s. */
export type TaskOptions = (CronTiming | IntervalTiming) &
  TaskPolicyOptions &
  Pick<LeaseOptions, 'ttl' | 'heartbeat' | 'maxLifetime'>

/** A task as the rest of the scheduler sees it. */
export interface TaskDefinition extends SlotPolicies {
  readonly name: string
  readonly storedName: string
  readonly schedule: Schedule
  readonly onCrash: 'skip' | 'retry'
  readonly maxAttempts: number
  readonly overlap: 'skip' | 'queue' | 'cancel' | 'allow'
  /** With `overlap: 'allow'`, how many runs there may be at a time; else 0. */
  readonly laneCount: number
  /** It is one of those. */
  readonly isLane: boolean
  /** null: no limit. */
  readonly timeoutMs: number | null
  /** Another key that each run has to hold. */
  readonly lock: TaskLock | null
  readonly lease: ResolvedLeaseOptions
  /** All of it as JSON, for operators and other nodes. */
  readonly text: string
}

/** A lock that the runs of a task share with others. */
export interface TaskLock {
  readonly key: string
  readonly options: Pick<AcquireOptions, 'ttl' | 'wait' | 'waitStep'>
}

/** What a scheduler's options mean for its tasks. */
export interface TaskDefaults {
  readonly service: ResolvedLockServiceOptions
  readonly timeZone: string
  readonly lease: Pick<LeaseOptions, 'ttl' | 'heartbeat' | 'maxLifetime'>
}

const day = 86_400_000
export const leaseOptionNames = ['ttl', 'heartbeat', 'maxLifetime'] as const
const taskOptionNames = [
  'cron',
  'timeZone',
  'every',
  'onCrash',
  'maxAttempts',
  'overlap',
  'maxOverlap',
  'catchUp',
  'catchUpWindow',
  'catchUpMax',
  'startDeadline',
  'timeout',
  'jitter',
  'lock',
  'lockWait',
  'lockWaitStep',
  'lockTtl',
  ...leaseOptionNames,
] as const

/** @throws InvalidOptionError */
export function resolveTask(name: string, given: TaskOptions, defaults: TaskDefaults): TaskDefinition {
  const storedName = toStoredKey('name', name)
  const options = readOptions('schedule', given, taskOptionNames)
  const schedule = resolveSchedule(options, defaults.timeZone)
  const { service, lease } = defaults
  const onCrash = oneOf('onCrash', options.onCrash ?? 'skip', ['skip', 'retry'])
  const catchUp = oneOf('catchUp', options.catchUp ?? 'latest', ['none', 'latest', 'all'])
  const policies = {
    onCrash,
    maxAttempts: resolveMaxAttempts(options.maxAttempts, onCrash),
    overlap: resolveOverlap(options.overlap, catchUp),
    catchUp,
    catchUpWindowMs: resolveCatchUpWindow(options.catchUpWindow, catchUp, schedule),
    catchUpMax: resolveCatchUpMax(options.catchUpMax, catchUp),
    startDeadlineMs: parseDuration('startDeadline', options.startDeadline ?? 60_000, { min: 0, max: year }),
    timeoutMs:
      options.timeout === undefined ? null : parseDuration('timeout', options.timeout, { min: 1, max: year }),
    jitterMs: parseDuration('jitter', options.jitter ?? 0, { min: 0, max: day }),
  }
  const lock = resolveLock(options, service)
  const resolved = resolveLeaseOptions(
    { ...service.lease, ...givenLeaseOptions(lease), ...givenLeaseOptions(options) },
    service.driver,
  )
  const shownLock = lock === null ? {} : { lock: lock.key.slice(0, 200) }
  const laneCount = resolveMaxOverlap(options.maxOverlap, policies.overlap)
  const shownLanes = laneCount === 0 ? {} : { maxOverlap: laneCount }
  const text = JSON.stringify({
    ...shownName(name, storedName),
    ...schedule.timing,
    ...policies,
    ...shownLanes,
    ...shownLock,
    ttlMs: resolved.ttlMs,
  })
  return { name, storedName, schedule, ...policies, laneCount, isLane: false, lock, lease: resolved, text }
}

/** Tasks are mostly due on the hour: what fires at the same instants is computed once for all of them. */
const crons = new Map<string, Schedule>()
const mostCrons = 256

/** @throws InvalidOptionError */
function sharedCron(cron: string, timeZone: string): Schedule {
  const key = typeof cron === 'string' && typeof timeZone === 'string' ? `${timeZone} ${cron}` : ''
  const known = crons.get(key)
  if (known !== undefined) return known
  const schedule = remembering(cronSchedule(cron, timeZone))
  if (crons.size >= mostCrons) crons.clear()
  crons.set(key, schedule)
  return schedule
}

/** @throws InvalidOptionError */
export function resolveSchedule(options: ScheduleTiming, defaultTimeZone: string): Schedule {
  const { cron, every, timeZone } = options
  if ((cron === undefined) === (every === undefined)) {
    throw new InvalidOptionError(
      cron === undefined ? 'cron' : 'every',
      "A task needs either cron, such as '0 2 * * *', or every, such as '30s'.",
    )
  }
  if (cron !== undefined) return sharedCron(cron, timeZone ?? defaultTimeZone)
  if (timeZone !== undefined) {
    throw new InvalidOptionError('timeZone', 'timeZone goes with cron: an interval is the same in all zones.')
  }
  return intervalSchedule(parseDuration('every', every, intervalRange))
}

function resolveMaxAttempts(maxAttempts: number | undefined, onCrash: 'skip' | 'retry'): number {
  if (maxAttempts === undefined) return onCrash === 'retry' ? 3 : 1
  if (onCrash !== 'retry') {
    throw new InvalidOptionError('maxAttempts', "maxAttempts goes with onCrash: 'retry'.")
  }
  requireInteger('maxAttempts', maxAttempts, 2, 1_000)
  return maxAttempts
}

function resolveCatchUpWindow(
  catchUpWindow: Duration | undefined,
  catchUp: SlotPolicies['catchUp'],
  schedule: Schedule,
): number {
  if (catchUpWindow === undefined) {
    const slot = schedule.next(0)
    return Math.max(day, schedule.next(slot) - slot)
  }
  if (catchUp === 'none') {
    throw new InvalidOptionError('catchUpWindow', "catchUpWindow goes with catchUp: 'latest' or 'all'.")
  }
  return parseDuration('catchUpWindow', catchUpWindow, { min: 0, max: Infinity })
}

function resolveOverlap(
  overlap: TaskPolicyOptions['overlap'],
  catchUp: SlotPolicies['catchUp'],
): TaskDefinition['overlap'] {
  const chosen = overlap ?? (catchUp === 'all' ? 'queue' : 'skip')
  oneOf('overlap', chosen, ['skip', 'queue', 'cancel', 'allow'])
  if (catchUp === 'all' && chosen !== 'queue') {
    throw new InvalidOptionError(
      'overlap',
      "With catchUp: 'all' overlap must be 'queue': what comes due while a missed slot is made up for is to run as well.",
    )
  }
  return chosen
}

function resolveMaxOverlap(maxOverlap: number | undefined, overlap: TaskDefinition['overlap']): number {
  if (overlap !== 'allow') {
    if (maxOverlap === undefined) return 0
    throw new InvalidOptionError('maxOverlap', "maxOverlap goes with overlap: 'allow'.")
  }
  if (maxOverlap === undefined) return 10
  requireInteger('maxOverlap', maxOverlap, 2, 100)
  return maxOverlap
}

function resolveCatchUpMax(catchUpMax: number | undefined, catchUp: SlotPolicies['catchUp']): number {
  if (catchUpMax === undefined) return 100
  if (catchUp !== 'all') {
    throw new InvalidOptionError('catchUpMax', "catchUpMax goes with catchUp: 'all'.")
  }
  requireInteger('catchUpMax', catchUpMax, 1, 1_000)
  return catchUpMax
}

function resolveLock(options: TaskPolicyOptions, service: ResolvedLockServiceOptions): TaskLock | null {
  const { lock, lockWait, lockWaitStep, lockTtl } = options
  if (lock === undefined) {
    for (const name of ['lockWait', 'lockWaitStep', 'lockTtl'] as const) {
      if (options[name] !== undefined) throw new InvalidOptionError(name, `${name} goes with lock.`)
    }
    return null
  }
  toStoredKey('lock', lock)
  const ttlMs = parseDuration('lockTtl', lockTtl ?? 60_000, {
    min: Math.max(100, service.driver.abilities.minTtlMs),
    max: year,
  })
  return {
    key: lock,
    options: {
      ttl: ttlMs,
      wait: parseDuration('lockWait', lockWait ?? 0, { min: 0, max: Infinity }),
      waitStep: parseDuration('lockWaitStep', lockWaitStep ?? 100, { min: 1, max: 3_600_000 }),
    },
  }
}

function oneOf<Choice extends string>(option: string, value: Choice, choices: readonly Choice[]): Choice {
  requireOption(choices.includes(value), option, () => {
    const shown = typeof value === 'string' ? quoted(value) : typeof value
    return `${choices.map((choice) => `'${choice}'`).join(' or ')}; got ${shown}`
  })
  return value
}

/** Those that were given. */
export function givenLeaseOptions(options: TaskDefaults['lease']): LeaseOptions {
  const entries = leaseOptionNames
    .map((name) => [name, options[name]] as const)
    .filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as LeaseOptions
}
