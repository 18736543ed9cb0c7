import { type Duration, parseDuration, year } from '../core/duration.ts'
import { InvalidOptionError, quoted } from '../core/errors.ts'
import {
  type LeaseOptions,
  refuseUnknown,
  type ResolvedLeaseOptions,
  type ResolvedLockServiceOptions,
  resolveLeaseOptions,
} from '../core/options.ts'
import { toStoredKey } from '../core/stored-key.ts'
import { cronSchedule } from './cron-schedule.ts'
import { intervalSchedule } from './interval-schedule.ts'
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

export interface TaskPolicyOptions {
  /**
   * What becomes of a run whose node died or lost its lease in the middle. `'skip'`: at most once; the run is recorded
   * as lost. `'retry'`: at least once; a live node runs the same slot again as the next attempt, as soon as the lease has
   * lapsed. A handler that throws has failed, and is not run again under either. Default `'skip'`.
   */
  readonly onCrash?: 'skip' | 'retry' | undefined
  /** With `onCrash: 'retry'`, how often one slot may be begun in all. Default 3, at least 2, at most 1,000. */
  readonly maxAttempts?: number | undefined
  /** What becomes of a slot that comes due while an earlier one still runs. `'skip'`: it is skipped, and recorded so. */
  readonly overlap?: 'skip' | undefined
  /**
   * What becomes of slots that came due while no node was there. `'latest'`: the newest of them runs, once, if it is not
   * older than `catchUpWindow`. `'none'`: none of them. Slots that don't run are recorded as missed. Default `'latest'`.
   */
  readonly catchUp?: 'none' | 'latest' | undefined
  /** With `catchUp: 'latest'`, how old a slot may be and still run. Default: `'24h'`, or the schedule's period if longer. */
  readonly catchUpWindow?: Duration | undefined
  /**
   * How late a slot may be claimed without counting as missed. Matters with `catchUp: 'none'`: a shorter one drops slots
   * when nodes are slow, a longer one runs them late after an outage. Default 60 s; a slot never runs once the next one
   * is due.
   */
  readonly startDeadline?: Duration | undefined
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
  readonly overlap: 'skip'
  readonly lease: ResolvedLeaseOptions
  /** All of it as JSON, for operators and other nodes. */
  readonly text: string
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
  'catchUp',
  'catchUpWindow',
  'startDeadline',
  ...leaseOptionNames,
]

/** @throws InvalidOptionError */
export function resolveTask(name: string, options: TaskOptions, defaults: TaskDefaults): TaskDefinition {
  const storedName = toStoredKey('name', name)
  refuseUnknown('schedule', options, taskOptionNames)
  const schedule = resolveSchedule(options, defaults.timeZone)
  const { service, lease } = defaults
  const onCrash = oneOf('onCrash', options.onCrash ?? 'skip', ['skip', 'retry'])
  const overlap = oneOf('overlap', options.overlap ?? 'skip', ['skip'])
  const catchUp = oneOf('catchUp', options.catchUp ?? 'latest', ['none', 'latest'])
  const policies = {
    onCrash,
    maxAttempts: resolveMaxAttempts(options.maxAttempts, onCrash),
    overlap,
    catchUp,
    catchUpWindowMs: resolveCatchUpWindow(options.catchUpWindow, catchUp, schedule),
    startDeadlineMs: parseDuration('startDeadline', options.startDeadline ?? 60_000, { min: 0, max: year }),
  }
  const resolved = resolveLeaseOptions(
    { ...service.lease, ...givenLeaseOptions(lease), ...givenLeaseOptions(options) },
    service.driver,
  )
  const shownName = storedName === name ? {} : { name: name.slice(0, 200) }
  const text = JSON.stringify({ ...shownName, ...schedule.timing, ...policies, ttlMs: resolved.ttlMs })
  return { name, storedName, schedule, ...policies, lease: resolved, text }
}

/** Reads the schedule back from {@link TaskDefinition.text}; null if it cannot be read. */
export function scheduleFromText(text: string): Schedule | null {
  try {
    const { cron, timeZone, everyMs } = JSON.parse(text) as Record<string, unknown>
    if (typeof cron === 'string' && typeof timeZone === 'string') return cronSchedule(cron, timeZone)
    return typeof everyMs === 'number' && everyMs > 0 ? intervalSchedule(everyMs) : null
  } catch {
    return null
  }
}

/** @throws InvalidOptionError */
export function resolveSchedule(
  options: Pick<TaskOptions, 'timeZone'> & {
    readonly cron?: string | undefined
    readonly every?: Duration | undefined
  },
  defaultTimeZone: string,
): Schedule {
  const { cron, every, timeZone } = options
  if ((cron === undefined) === (every === undefined)) {
    throw new InvalidOptionError(
      cron === undefined ? 'cron' : 'every',
      "A task needs either cron, such as '0 2 * * *', or every, such as '30s'.",
    )
  }
  if (cron !== undefined) return remembering(cronSchedule(cron, timeZone ?? defaultTimeZone))
  if (timeZone !== undefined) {
    throw new InvalidOptionError('timeZone', 'timeZone goes with cron: an interval is the same in all zones.')
  }
  return intervalSchedule(parseDuration('every', every, { min: 100, max: year }))
}

function resolveMaxAttempts(maxAttempts: number | undefined, onCrash: 'skip' | 'retry'): number {
  if (maxAttempts === undefined) return onCrash === 'retry' ? 3 : 1
  if (onCrash !== 'retry') {
    throw new InvalidOptionError('maxAttempts', "maxAttempts goes with onCrash: 'retry'.")
  }
  if (!Number.isInteger(maxAttempts) || maxAttempts < 2 || maxAttempts > 1_000) {
    throw new InvalidOptionError('maxAttempts', 'maxAttempts must be an integer between 2 and 1,000.')
  }
  return maxAttempts
}

function resolveCatchUpWindow(
  catchUpWindow: Duration | undefined,
  catchUp: 'none' | 'latest',
  schedule: Schedule,
): number {
  if (catchUpWindow === undefined) {
    const slot = schedule.next(0)
    return Math.max(day, schedule.next(slot) - slot)
  }
  if (catchUp === 'none') {
    throw new InvalidOptionError('catchUpWindow', "catchUpWindow goes with catchUp: 'latest'.")
  }
  return parseDuration('catchUpWindow', catchUpWindow, { min: 0, max: Infinity })
}

function oneOf<Choice extends string>(option: string, value: Choice, choices: readonly Choice[]): Choice {
  if (choices.includes(value)) return value
  const shown = typeof value === 'string' ? quoted(value) : typeof value
  throw new InvalidOptionError(
    option,
    `${option} must be ${choices.map((choice) => `'${choice}'`).join(' or ')}; got ${shown}.`,
  )
}

/** Those that were given. */
export function givenLeaseOptions(options: TaskDefaults['lease']): LeaseOptions {
  const entries = leaseOptionNames
    .map((name) => [name, options[name]] as const)
    .filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as LeaseOptions
}
