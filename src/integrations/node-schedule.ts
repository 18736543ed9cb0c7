import { type FiredRun, InvalidOptionError, type ScheduledTaskStore } from '../index.ts'
import { GuardedJob, type GuardOptions } from './guarded-fire.ts'

export interface NodeScheduleOptions extends GuardOptions {
  /**
   * The cron by which it is fired, so that the run log has a reason for slots that no process fires. Default: the log has
   * what was fired.
   */
  readonly cron?: string | undefined
  /** The zone of `cron`, `tz` there. Default: that of the store. */
  readonly timeZone?: string | undefined
}

/**
 * Wraps a function for `scheduleJob` of node-schedule 2: each slot runs in one process of the fleet.
 *
 * The slot is the fire date that node-schedule passes, however late it fires. `job.invoke()` passes none: it runs where
 * it was called, under the lock `name`. What the function returns or throws is node-schedule's, as before (`success` and
 * `error` of the job; an `error` that nobody listens to ends the process).
 *
 * @throws InvalidOptionError
 * @example
 * scheduleJob({ rule: '0 3 * * *', tz: 'Europe/Paris' }, guardNodeSchedule(store, 'backup', backUp))
 */
export function guardNodeSchedule<This, Result>(
  store: ScheduledTaskStore,
  name: string,
  fn: (this: This, fireDate: Date, run: FiredRun) => Result,
  options: NodeScheduleOptions = {},
): (this: This, fireDate: Date) => Promise<Awaited<Result> | undefined> {
  const { cron, timeZone, ...guardOptions } = options
  const history = { ...(cron === undefined ? {} : { cron }), ...(timeZone === undefined ? {} : { timeZone }) }
  store.guard(name, () => {}, history)
  if (typeof fn !== 'function') throw new InvalidOptionError('fn', 'fn must be a function.')
  const job = new GuardedJob(store, name, guardOptions)
  return function (fireDate: Date | undefined) {
    const timing = fireDate instanceof Date ? { slot: fireDate, ...history } : {}
    return job.fire(timing, (run) => fn.call(this, fireDate as Date, run))
  }
}
