import { type Duration, parseDuration, year } from '../core/duration.ts'
import { requireInteger, requireOption } from '../core/errors.ts'
import type { LockService } from '../core/lock-service.ts'
import type { LeaseOptions } from '../core/options.ts'
import { readOptions } from '../core/read-options.ts'

/** What one scheduler can be told; ttl, heartbeat and maxLifetime are the defaults of its tasks. */
export interface TaskSchedulerOptions extends Pick<LeaseOptions, 'ttl' | 'heartbeat' | 'maxLifetime'> {
  /** The service whose store and namespace the tasks live in. Close it after the scheduler was stopped. */
  readonly locks: LockService
  /** Whether a running scheduler keeps the process alive. Default true. */
  readonly keepAlive?: boolean | undefined
  /**
   * How often this process looks whether tasks were paused, resumed or edited elsewhere. Shorter notices sooner, each
   * look is one cheap read. Default `'5s'`, at least 100 ms, at most 1 min.
   */
  readonly controlEvery?: Duration | undefined
  /**
   * How long the run log keeps what became of a slot, counted from its end. This process deletes what is older in the
   * background, at most every ten minutes. Longer shows more in `history()` and takes more room; the fleet keeps what the
   * shortest of its processes says. Default `'30d'`, at least 1 min, at most 100 years.
   */
  readonly logRetention?: Duration | undefined
  /** The time zone of crons that name none. The same for the whole fleet, or it runs different schedules. Default `'UTC'`. */
  readonly timeZone?: string | undefined
}

export interface StopOptions {
  /**
   * How long running tasks may go on. Then their signals are aborted, and what has not settled a second later is left to
   * lapse. Default `'30s'`; 0 aborts at once, `Infinity` waits for all.
   */
  readonly drain?: Duration | undefined
}

export interface HistoryOptions {
  /** The most entries to return, the latest first. Default 100, at most 10,000. */
  readonly limit?: number | undefined
}

export interface ResolvedTaskSchedulerOptions {
  readonly locks: LockService
  readonly keepAlive: boolean
  readonly controlEveryMs: number
  readonly logRetentionMs: number
  readonly timeZone: string
  readonly lease: Pick<LeaseOptions, 'ttl' | 'heartbeat' | 'maxLifetime'>
}

const schedulerOptionNames = [
  'locks',
  'keepAlive',
  'controlEvery',
  'logRetention',
  'timeZone',
  'ttl',
  'heartbeat',
  'maxLifetime',
] as const

/** @throws InvalidOptionError */
export function resolveTaskSchedulerOptions(options: TaskSchedulerOptions): ResolvedTaskSchedulerOptions {
  const {
    locks,
    keepAlive = true,
    controlEvery = 5_000,
    logRetention = '30d',
    timeZone = 'UTC',
    ttl,
    heartbeat,
    maxLifetime,
  } = readOptions('TaskScheduler', options, schedulerOptionNames)
  requireOption(typeof keepAlive === 'boolean', 'keepAlive', 'true or false')
  return {
    locks,
    keepAlive,
    controlEveryMs: parseDuration('controlEvery', controlEvery, { min: 100, max: 60_000 }),
    logRetentionMs: parseDuration('logRetention', logRetention, { min: 60_000, max: 100 * year }),
    timeZone,
    lease: { ttl, heartbeat, maxLifetime },
  }
}

/** @throws InvalidOptionError */
export function resolveDrain(options: StopOptions): number {
  const { drain = 30_000 } = readOptions('stop', options, ['drain'])
  return parseDuration('drain', drain, { min: 0, max: Infinity })
}

/** @throws InvalidOptionError */
export function resolveHistoryLimit(options: HistoryOptions): number {
  const { limit = 100 } = readOptions('history', options, ['limit'])
  requireInteger('limit', limit, 1, 10_000)
  return limit
}
