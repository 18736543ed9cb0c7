import { type SlotTiming, systemClock } from '../../index.ts'
import type { FleetJob } from './fleet-job.ts'
import type { CronJob } from './nest-schedule.ts'

/** Timers ring a little before their time, at most. */
const earlyMs = 50

/**
 * Lets one process of the fleet run what a cron job calls. All its callbacks are one unit: each for itself, the second
 * would find the slot decided.
 */
export function guardCronJob(cronJob: CronJob, job: FleetJob): void {
  const fired = followSlots(cronJob)
  const callbacks = [...cronJob._callbacks]
  const callAll = async (context: unknown, args: unknown[]): Promise<void> => {
    const results: unknown[] = []
    for (const callback of callbacks) {
      const result = callback.apply(context, args)
      results.push(cronJob.waitForCompletion ? await result : result)
    }
    const outcomes = await Promise.allSettled(results)
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }
  cronJob._callbacks = [
    function guarded(this: unknown, ...args: unknown[]) {
      return job.fire(fired(), cronTiming(cronJob), () => callAll(this, args))
    },
  ]
  cronJob.addCallback = (callback) => {
    if (typeof callback === 'function') callbacks.push(callback)
  }
}

export function cronTiming({ cronTime }: CronJob): SlotTiming {
  const { source, timeZone } = cronTime
  return typeof source === 'string' && timeZone !== undefined ? { cron: source, timeZone } : {}
}

/**
 * The slots of a cron job. It knows only its next date, so that is noted when its timer is armed: when the timer rings,
 * the job arms itself again and then calls back.
 *
 * @returns the slot that is being fired; null in a call of `fireOnTick` that is none of the timer's
 */
function followSlots(job: CronJob): () => number | null {
  const { start, fireOnTick } = job
  let armed = job.isActive ? armedBetween(nextFrom(job, Date.now() - 500), next(job)) : neverArmed
  /** What the timer has rung for and is not called back yet. */
  let due: number | null = null
  /** A slot that was missed by a hair is fired by `start` itself. */
  let missed: number | null = null
  let seen = job.lastExecution
  let fired: number | null = null

  job.start = () => {
    if (job.isActive) return start.call(job)
    if (job.lastExecution !== seen) due = armed(systemClock.wall())
    const before = next(job)
    missed = before
    start.call(job)
    missed = null
    armed = armedBetween(before, next(job))
  }
  job.fireOnTick = (...args) => {
    const hasRung = job.lastExecution !== seen
    seen = job.lastExecution
    if (missed !== null) {
      fired = missed
    } else {
      fired = due ?? (hasRung ? armed(systemClock.wall()) : null)
      due = null
    }
    return fireOnTick.apply(job, args)
  }
  return () => fired
}

type Armed = (wall: number) => number | null

const neverArmed: Armed = () => null

/** The timer was armed for one of two dates, if a date passed just then; when it rings it shows for which. */
function armedBetween(before: number | null, after: number | null): Armed {
  return (wall) => (after === null || wall >= after - earlyMs ? after : (before ?? after))
}

function next(job: CronJob): number | null {
  try {
    return job.nextDate().toMillis()
  } catch {
    // A single date that has passed.
    return null
  }
}

function nextFrom(job: CronJob, from: number): number | null {
  try {
    return job.cronTime.getNextDateFrom(new Date(from), job.cronTime.timeZone).toMillis()
  } catch {
    return next(job)
  }
}
