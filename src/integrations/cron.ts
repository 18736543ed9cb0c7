import { type FireOptions, InvalidOptionError } from '../index.ts'
import { GuardedJob, type GuardingStore, type GuardOptions } from './guarded-fire.ts'

/** What is used of the `CronTime` of cron 4. */
export interface CronTimeLike {
  readonly source: unknown
  readonly timeZone?: string
  readonly utcOffset?: number
  sendAt(): unknown
}

/** What is used of the `CronJob` of cron 4. */
export interface CronJobLike {
  readonly cronTime: CronTimeLike
  readonly isActive: boolean
  readonly lastExecution: Date | null
  readonly runOnce: boolean
  readonly waitForCompletion: boolean
  addCallback(callback: (this: never, onComplete: never) => void): void
  fireOnTick(): Promise<void>
  nextDate(): { toMillis(): number }
  start(): void
}

type Callback = (this: unknown, onComplete: unknown) => unknown

/**
 * Guards a `CronJob` of cron 4, running or not: each slot runs in one process of the fleet.
 *
 * The slot is the one for which the job's timer was set, however late it rings. All callbacks of the job are one run,
 * which lasts until the promises that they return are settled. `job.fireOnTick()` has no slot: it runs where it was
 * called, under the lock `name`. What the callbacks throw goes to the job's `errorHandler`, as before. A job made with
 * `runOnInit` has fired by then.
 *
 * @returns the same job
 * @throws InvalidOptionError also for an object that is no such job
 * @example
 * guardCronJob(store, 'backup', new CronJob('0 3 * * *', backUp, null, true, 'Europe/Paris'))
 */
export function guardCronJob<Job extends CronJobLike>(
  store: GuardingStore,
  name: string,
  job: Job,
  options: GuardOptions = {},
): Job {
  const guarded = new GuardedJob(store, name, options)
  const callbacks = takeCallbacks(job)
  const { start, fireOnTick } = job
  /** For which the job's timer is set. */
  let armed = job.isActive ? job.nextDate().toMillis() : null
  /** For which it has rung, until the callbacks are called: the job sets it again before. */
  let rung: number | null = null
  let isStarting = false
  let lastExecution = job.lastExecution
  /** Of the fire in which the callbacks are called, at once. */
  let timing: FireOptions = {}

  Object.assign(job, {
    // The timer calls this first, and fireOnTick then; within it a fire that was missed by moments.
    start() {
      if (job.isActive) return
      if (job.lastExecution !== lastExecution) rung = armed
      lastExecution = job.lastExecution
      isStarting = true
      const stop = watchSendAt(job.cronTime, (instant) => (armed = instant))
      try {
        start.call(job)
      } finally {
        stop()
        isStarting = false
      }
    },
    fireOnTick() {
      // Missed by moments, or rung for a job that runs once: that does not set its timer again.
      const isOfTimer = isStarting || job.lastExecution !== lastExecution
      lastExecution = job.lastExecution
      const slot = isOfTimer ? armed : rung
      if (!isStarting) rung = null
      timing = slot === null ? {} : { slot, ...historyTiming(guarded, job.cronTime) }
      return fireOnTick.call(job)
    },
    addCallback: (callback: unknown) => {
      if (typeof callback === 'function') callbacks.push(callback as Callback)
    },
    _callbacks: [
      function (this: unknown, onComplete: unknown) {
        return guarded.fire(timing, () => callAll(callbacks, this, onComplete, job.waitForCompletion))
      },
    ],
  })
  return job
}

/** @throws InvalidOptionError */
function takeCallbacks(job: CronJobLike): Callback[] {
  const parts = job as unknown as Record<string, unknown> | null | undefined
  const methods = ['start', 'fireOnTick', 'nextDate', 'addCallback']
  const callbacks = parts?.['_callbacks']
  const isCronJob =
    Array.isArray(callbacks) &&
    typeof parts?.['isActive'] === 'boolean' &&
    methods.every((method) => typeof parts[method] === 'function')
  if (isCronJob) return callbacks as Callback[]
  throw new InvalidOptionError('job', 'job must be a CronJob of cron 4.')
}

/** Sees which instant the job sets its timer for. */
function watchSendAt(cronTime: CronTimeLike, see: (instant: number) => void): () => void {
  const sendAt = cronTime.sendAt
  const own = Object.getOwnPropertyDescriptor(cronTime, 'sendAt')
  const watching = (...args: Parameters<typeof sendAt>): unknown => {
    const found = sendAt.apply(cronTime, args) as { toMillis?(): number }
    if (found.toMillis !== undefined) see(found.toMillis())
    return found
  }
  Object.assign(cronTime, { sendAt: watching })
  return () => {
    if (own === undefined) Reflect.deleteProperty(cronTime, 'sendAt')
    else Object.defineProperty(cronTime, 'sendAt', own)
  }
}

function historyTiming(guarded: GuardedJob, { source, timeZone, utcOffset }: CronTimeLike): FireOptions {
  return utcOffset === undefined ? guarded.cronTiming(source, timeZone) : {}
}

/** As the job itself would, but one run that ends when all of them have. */
async function callAll(
  callbacks: readonly Callback[],
  context: unknown,
  onComplete: unknown,
  isOneByOne: boolean,
): Promise<void> {
  const running: unknown[] = []
  let failure: { readonly error: unknown } | undefined
  for (const callback of callbacks) {
    try {
      const result = callback.call(context, onComplete)
      running.push(isOneByOne ? await result : result)
    } catch (error) {
      // Those after it are not called.
      failure = { error }
      break
    }
  }
  for (const settled of await Promise.allSettled(running)) {
    if (settled.status === 'rejected') failure ??= { error: settled.reason as unknown }
  }
  if (failure !== undefined) throw failure.error
}
