import { currentLease } from '../src/core/ambient.ts'
import type { Lease } from '../src/core/lease.ts'
import type { ScheduledTaskStore } from '../src/scheduler/scheduled-task-store.ts'
import type { TaskRun } from '../src/scheduler/task-run.ts'
import type { TaskScheduler } from '../src/scheduler/task-scheduler.ts'
import type { Beliefs } from './beliefs.ts'
import type { History } from './history.ts'
import { taskKey } from './observed-store.ts'
import type { Deed, FiredPlan, TaskPlan } from './plan.ts'

export interface LifeTasksOptions {
  readonly by: string
  readonly history: History
  readonly beliefs: Beliefs
  readonly isEdited: boolean
  readonly scheduler: TaskScheduler
  readonly store: ScheduledTaskStore | null
  readonly tokenOf: (key: string, fence: number) => string
  /** An instant of the store, of milliseconds since the beginning. */
  readonly instantOf: (at: number) => Date
  readonly sleep: (forMs: number) => Promise<void>
  readonly failed: (during: 'order' | 'fire', key: string, error: unknown) => void
}

type RunView = Pick<TaskRun, 'task' | 'fence' | 'signal' | 'isHeld'>
type OrderDeed = Extract<Deed, { kind: 'trigger' | 'backfill' }>

/** The user code of one process that tasks run, and what it asks of them. */
export class LifeTasks {
  readonly #options: LifeTasksOptions

  constructor(options: LifeTasksOptions) {
    this.#options = options
  }

  schedule(task: TaskPlan): void {
    const { isEdited, scheduler } = this.#options
    const { name, everyMs, editedEveryMs, workMs, lock } = task
    const every = isEdited ? editedEveryMs : everyMs
    const minds = task.overlap !== 'skip' || task.timeoutMs !== null || lock !== null
    scheduler.schedule(name, { every, ...policiesOf(task) }, async (run) => {
      const index = Math.round(run.slot.getTime() / every) + run.attempt
      this.#noteRun(run, run.slot.getTime(), run.attempt, run.isManual)
      const isCutOff = await this.#run(run, workMs[index % workMs.length] ?? 1, {
        ignoresSignal: index % 3 === 0,
        lock,
      })
      if (minds && isCutOff && index % 2 === 0) throw run.signal.reason
      if (index % 5 === 0) throw new Error('failed')
    })
  }

  async order(deed: OrderDeed): Promise<void> {
    const { scheduler, instantOf, by, history, failed } = this.#options
    const { task, requestId, kind } = deed
    const asked = { by: requestId, requestId }
    try {
      const outcome =
        deed.kind === 'trigger'
          ? await scheduler.trigger(task, asked)
          : await scheduler.backfill(task, { ...asked, from: instantOf(deed.from), to: instantOf(deed.to) })
      history.add({ kind: 'ordered', by, task, requestId, what: kind, outcome })
    } catch (error) {
      failed('order', task, error)
    }
  }

  async fire({ name, everyMs: every, ttlMs: ttl, startDeadlineMs, workMs }: FiredPlan, at: number) {
    const { store, instantOf, by, history, failed } = this.#options
    const slot = instantOf(at)
    const ms = slot.getTime()
    let hasRun = false
    const work = async (run: RunView): Promise<void> => {
      hasRun = true
      this.#noteRun(run, ms, 1, false)
      await this.#run(run, workMs, { ignoresSignal: at % (3 * every) === 0, lock: null })
    }
    history.add({ kind: 'fires', by, task: name, slot: ms })
    try {
      const outcome = await store?.run(name, work, { every, slot, ttl, startDeadline: startDeadlineMs })
      history.add({ kind: 'fired', by, task: name, slot: ms, outcome: outcome ?? 'nothing', hasRun })
    } catch (error) {
      failed('fire', name, error)
    }
  }

  #noteRun({ task, fence }: RunView, slot: number, attempt: number, isManual: boolean): void {
    const { history, by } = this.#options
    history.add({ kind: 'run', by, task, slot, attempt, fence, isManual })
  }

  /** @returns whether it heard that it is to stop, and did */
  async #run(
    run: RunView,
    workMs: number,
    { ignoresSignal, lock }: { readonly ignoresSignal: boolean; readonly lock: string | null },
  ): Promise<boolean> {
    const { beliefs, tokenOf, sleep } = this.#options
    const { task, fence, signal } = run
    const key = taskKey(task)
    const belief = beliefs.begin(key, tokenOf(key, fence), fence, run)
    const lease = lock === null ? undefined : currentLease()
    const lockBelief = lease === undefined ? null : beliefs.begin(lease.key, lease.token, lease.fence, lease)
    const stopWatching = lease === undefined ? () => {} : this.#watchLock(lease, run)
    const aborted = new Promise<'aborted'>((resolve) => {
      signal.addEventListener('abort', () => resolve('aborted'))
    })
    const end = ignoresSignal ? await sleep(workMs) : await Promise.race([sleep(workMs), aborted])
    stopWatching()
    if (lockBelief !== null) beliefs.end(lockBelief)
    beliefs.end(belief)
    return end === 'aborted'
  }

  /** A run that lost its lock is to be told in the same turn. */
  #watchLock(lease: Lease, run: RunView): () => void {
    const { history, by } = this.#options
    const { task, fence, signal } = run
    const onLost = (): void => history.add({ kind: 'lock-lost', by, task, fence, isTold: signal.aborted })
    lease.signal.addEventListener('abort', onLost)
    return () => lease.signal.removeEventListener('abort', onLost)
  }
}

function policiesOf(task: TaskPlan) {
  const { onCrash, catchUp, startDeadlineMs, ttlMs, overlap, timeoutMs, jitterMs, lock } = task
  return {
    onCrash,
    catchUp,
    overlap,
    startDeadline: startDeadlineMs,
    ttl: ttlMs,
    ...(catchUp === 'all' ? { catchUpMax: task.catchUpMax } : {}),
    ...(task.catchUpWindowMs === null ? {} : { catchUpWindow: task.catchUpWindowMs }),
    ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
    ...(jitterMs === 0 ? {} : { jitter: jitterMs }),
    ...(lock === null ? {} : { lock, lockWait: task.lockWaitMs, lockTtl: 800, lockWaitStep: 40 }),
  }
}
