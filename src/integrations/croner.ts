import {
  type FiredRun,
  type FireOptions,
  InvalidOptionError,
  type ScheduledTaskStore,
  systemClock,
} from '../index.ts'
import { GuardedJob, type GuardOptions } from './guarded-fire.ts'

/** What is used of the `Cron` of croner 10 and 11. */
export interface CronerJobLike {
  readonly options: object
  getOnce(): Date | null
  getPattern(): string | undefined
  previousRuns(count: number, reference: Date): Date[]
  schedule(fn: () => void): unknown
  trigger(): Promise<void>
}

/** With any other option its slots may not be those of the same cron with us. */
const plainOptions = new Set(['timezone', 'mode', 'paused', 'protect', 'catch', 'unref', 'name', 'context'])

/**
 * Gives a function to a `Cron` of croner 10 or 11 that has none yet: each slot runs in one process of the fleet.
 *
 * The slot is the newest one of the job when its timer rings, by croner itself. `job.trigger()` has no slot: it runs
 * where it was called, under the lock `name`. What the function throws goes to the job's `catch`, as before; without it
 * nobody handles the rejection. A job with `interval` is refused: it counts from the last run of its own process.
 *
 * @returns the same job
 * @throws InvalidOptionError also for an object that is no such job
 * @example
 * guardCroner(store, 'backup', new Cron('0 3 * * *', { timezone: 'Europe/Paris', catch: report }), backUp)
 */
export function guardCroner<Job extends CronerJobLike>(
  store: ScheduledTaskStore,
  name: string,
  job: Job,
  fn: (self: Job, context: unknown, run: FiredRun) => unknown,
  options: GuardOptions = {},
): Job {
  assertCroner(job)
  const guarded = new GuardedJob(store, name, options)
  const { trigger } = job
  let isByHand = false
  Object.assign(job, {
    // It calls the function at once.
    async trigger() {
      isByHand = true
      const triggered = trigger.call(job)
      isByHand = false
      await triggered
    },
  })
  job.schedule((...[, context]: unknown[]) => {
    const timing = isByHand ? {} : slotTiming(guarded, job)
    return guarded.fire(timing, (run) => fn(job, context, run))
  })
  return job
}

function slotTiming(guarded: GuardedJob, job: CronerJobLike): FireOptions {
  const [newest] = job.previousRuns(1, new Date(systemClock.wall() + 1))
  const slot = job.getOnce() ?? newest
  // A pattern whose last slot has passed by a step of the clock: nothing names it.
  if (slot === undefined) return {}
  const given = Object.entries(job.options).filter(([, value]) => value !== undefined && value !== false)
  const isPlain = given.every(([option]) => plainOptions.has(option))
  const timeZone = 'timezone' in job.options ? job.options.timezone : undefined
  const history = isPlain
    ? guarded.cronTiming(job.getPattern(), typeof timeZone === 'string' ? timeZone : undefined)
    : {}
  return { slot, ...history }
}

/** @throws InvalidOptionError */
function assertCroner(job: CronerJobLike): void {
  const methods = ['getOnce', 'getPattern', 'previousRuns', 'schedule', 'trigger'] as const
  if (!methods.every((method) => typeof job?.[method] === 'function')) {
    throw new InvalidOptionError('job', 'job must be a Cron of croner 10 or 11, without a function.')
  }
  if (Number(Reflect.get(job.options, 'interval') ?? 0) > 0) {
    throw new InvalidOptionError(
      'job',
      'A job with interval counts from the last run of its own process: processes agree on no slots. Use everySlot.',
    )
  }
}
