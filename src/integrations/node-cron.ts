import { type FiredRun, InvalidOptionError, type ScheduledTaskStore, systemClock } from '../index.ts'
import { GuardedJob, type GuardOptions } from './guarded-fire.ts'

/** What is used of a node-cron task. */
export interface NodeCronTaskLike {
  getPattern(): string
}

/** What is used of the context that node-cron 4 passes to a task. */
export interface NodeCronContextLike {
  /** The slot; for a task that was executed by hand, now. */
  readonly date: Date
  readonly task?: NodeCronTaskLike
  readonly execution?: { readonly reason: 'invoked' | 'scheduled' }
}

/**
 * Wraps a function for `cron.schedule` of node-cron 4: each slot runs in one process of the fleet.
 *
 * The slot is the one that node-cron computed, however late it fires. `task.execute()` has no slot: it runs where it was
 * called, under the lock `name`. What the function returns or throws is node-cron's, as before; a process that does not
 * run it returns undefined at once.
 *
 * @throws InvalidOptionError
 * @example
 * cron.schedule('0 3 * * *', guardNodeCron(store, 'backup', backUp), { timezone: 'Europe/Paris' })
 */
export function guardNodeCron<Context extends NodeCronContextLike, Result>(
  store: ScheduledTaskStore,
  name: string,
  fn: (context: Context, run: FiredRun) => Result,
  options: GuardOptions = {},
): (context: Context) => Promise<Awaited<Result> | undefined> {
  const job = new GuardedJob(store, name, options)
  return (context) => job.fire(timingOf(job, context), (run) => fn(context, run))
}

function timingOf(job: GuardedJob, { date, task, execution }: NodeCronContextLike): object {
  if (execution?.reason === 'invoked') return {}
  const pattern = task?.getPattern() ?? ''
  const timeZone: unknown = task === undefined ? undefined : Reflect.get(task, 'timezone')
  // Here both have to match where a day of the month and a weekday are given; everywhere else one is enough.
  const [day = '', , weekday = ''] = pattern.trim().split(/\s+/).slice(-3)
  const isUnlike = !/^[*?]$/.test(day) && !/^[*?]?$/.test(weekday)
  const cron = isUnlike ? undefined : pattern
  return { slot: date, ...job.cronTiming(cron, typeof timeZone === 'string' ? timeZone : undefined) }
}

/** A `RunCoordinator` of node-cron 4. */
export interface NodeCronCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>
  onComplete(key: string): void
}

export type NodeCronCoordinatorOptions = Omit<GuardOptions, 'onStoreError'>

/** What node-cron makes of a task's name and its slot. */
const fireKey = /^(.+):([+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s
/** The process of a background task waits for 5 s. */
const longestAnswerMs = 4_500

/**
 * A run coordinator for tasks with `distributed: true`, background tasks included: each slot runs in one process of the
 * fleet, also one that comes after the run has ended. The names of the tasks are those of `leasehold`.
 *
 * node-cron does not tell a coordinator that a run failed, so that the run log calls every run a success; `guardNodeCron`
 * knows. Its `distributedLease` is not used: the lease of a run is renewed until it ends. A background task whose process
 * dies does not end for node-cron; `maxLifetime` ends its lease.
 *
 * @param options `startDeadline`: how long to go on asking a store that cannot be reached. Default `'4s'`: node-cron
 *   gives up after 5 s where a background task asks
 * @throws InvalidOptionError
 * @example
 * setRunCoordinator(nodeCronCoordinator(store))
 * cron.schedule('0 3 * * *', './backup.js', { name: 'backup', distributed: true })
 */
export function nodeCronCoordinator(
  store: ScheduledTaskStore,
  options: NodeCronCoordinatorOptions = {},
): NodeCronCoordinator {
  const fireOptions = { startDeadline: '4s' as const, ...options }
  store.guard('any', () => {}, fireOptions)
  const completions = new Map<string, () => void>()
  return {
    async shouldRun(key) {
      const [, name, slot] = fireKey.exec(key) ?? []
      if (name === undefined || slot === undefined) {
        throw new InvalidOptionError('key', `${JSON.stringify(key)} is no key of a fire of node-cron 4.`)
      }
      const askedAt = systemClock.monotonic()
      return new Promise((resolve, reject) => {
        const untilComplete = (): Promise<void> => {
          if (systemClock.monotonic() - askedAt > longestAnswerMs) {
            throw new Error('The store granted it when node-cron no longer waited for the answer.')
          }
          resolve(true)
          return new Promise((complete) => void completions.set(key, complete))
        }
        store
          .run(name, untilComplete, { ...fireOptions, slot: new Date(slot) })
          .then(() => resolve(false), reject)
      })
    },
    onComplete(key) {
      completions.get(key)?.()
      completions.delete(key)
    },
  }
}
