import type { Dependent } from '../core/dependents.ts'
import { DuplicateTaskError, InvalidOptionError, SchedulerStateError } from '../core/errors.ts'
import { contextOf } from '../core/lock-service.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import { toStoredKey } from '../core/stored-key.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import { scheduledMethodsOf } from './decorators/scheduled-methods.ts'
import { type RunHistoryEntry, toHistory } from './history.ts'
import { LogPurge } from './log-purge.ts'
import { type BackfillOptions, orderRange, orderRun } from './manual-runs.ts'
import { Node } from './node.ts'
import {
  type HistoryOptions,
  resolveDrain,
  type ResolvedTaskSchedulerOptions,
  resolveHistoryLimit,
  resolveTaskSchedulerOptions,
  type StopOptions,
  type TaskSchedulerOptions,
} from './scheduler-options.ts'
import { resolveTask, type TaskDefaults, type TaskDefinition, type TaskOptions } from './task-options.ts'
import {
  type CancelOptions,
  type CancelOutcome,
  type ControlOptions,
  type ControlOutcome,
  requestCancel,
  requestControl,
} from './task-control.ts'
import { readLog } from './task-log.ts'
import { readLanes, readTask, readingOf } from './task-records.ts'
import type { TaskHandler } from './task-run.ts'
import { type TaskStatus, type TaskSummary, toStatus, toSummaries } from './task-status.ts'

/**
 * Fires tasks by cron or interval, each slot once for the whole fleet: make one in every process, with the same tasks,
 * on the same store and namespace.
 *
 * @example
 * const tasks = new TaskScheduler({ locks })
 * tasks.schedule('close-books', { cron: '0 2 * * *', timeZone: 'Europe/Paris', onCrash: 'retry' },
 *   async ({ slot, fence, signal }) => { … })
 * await tasks.start()
 * process.once('SIGTERM', () => tasks.stop({ drain: '30s' }))
 */
export class TaskScheduler {
  readonly #context: ServiceContext
  readonly #options: ResolvedTaskSchedulerOptions
  readonly #defaults: TaskDefaults
  readonly #logPurge: LogPurge
  readonly #tasks = new Map<string, readonly [TaskDefinition, TaskHandler]>()
  /** The present node, and earlier ones with handlers that have not ended. */
  readonly #nodes = new Set<Node>()
  readonly #dependent: Dependent = { close: () => this.#close() }
  #node: Node | null = null
  #stopping: Promise<void> | null = null

  /** @throws InvalidOptionError */
  constructor(options: TaskSchedulerOptions) {
    this.#options = resolveTaskSchedulerOptions(options)
    const { locks, timeZone, lease, logRetentionMs } = this.#options
    this.#context = contextOf(locks)
    this.#logPurge = new LogPurge(this.#context, logRetentionMs)
    this.#defaults = { service: this.#context.options, timeZone, lease }
    // A default that cannot be used is refused here, not by the first task that it is used for. To try a time zone costs.
    resolveTask('any', timeZone === 'UTC' ? { every: '24h' } : { cron: '@daily' }, this.#defaults)
  }

  /**
   * Adds a task. Before {@link start} or after it: then it is registered with the store at once.
   *
   * @param name shared by the whole fleet; any non-empty string, apart from the keys of locks
   * @throws InvalidOptionError (an impossible cron, an unknown time zone, …), DuplicateTaskError
   */
  schedule(name: string, options: TaskOptions, handler: TaskHandler): void {
    const definition = resolveTask(name, options, this.#defaults)
    if (typeof handler !== 'function') {
      throw new InvalidOptionError('handler', 'The third argument of schedule must be a function.')
    }
    if (this.#tasks.has(name)) throw new DuplicateTaskError(name)
    this.#tasks.set(name, [definition, handler])
    if (this.#stopping === null) this.#node?.add(definition, handler)
  }

  /**
   * Adds the methods of an instance that are decorated with `@Scheduled`, in the order in which its class declares them,
   * those of its base class first. They are called on the instance.
   *
   * @returns the names of the tasks
   * @throws InvalidOptionError if it has none, DuplicateTaskError; nothing is added then
   */
  register(instance: object): string[] {
    const methods = scheduledMethodsOf(instance)
    const taken = new Set(this.#tasks.keys())
    for (const { name, options } of methods) {
      resolveTask(name, options, this.#defaults)
      if (taken.has(name)) throw new DuplicateTaskError(name)
      taken.add(name)
    }
    for (const { name, options, handler } of methods) this.schedule(name, options, handler)
    return methods.map(({ name }) => name)
  }

  /**
   * Begins to fire the tasks. Resolves when the store knows them, or could not be reached: then it goes on trying in the
   * background, and fires once the store is there; `leasehold:scheduler-error` tells. May be called again after
   * {@link stop}.
   *
   * @throws SchedulerStateError if it runs or is stopping, StoreUnusableError if the store answers but cannot serve (then
   *   it does not run), ClosedError if the service was closed
   */
  async start(): Promise<void> {
    if (this.#node !== null) {
      throw new SchedulerStateError(
        this.#stopping === null
          ? 'This TaskScheduler runs already. Call start() once, and stop() before starting it again.'
          : 'This TaskScheduler is stopping. Wait for stop() before starting it again.',
      )
    }
    this.#context.dependents.add(this.#dependent)
    const node = new Node(this.#context, this.#options, this.#logPurge)
    this.#node = node
    this.#nodes.add(node)
    try {
      await node.start(this.#tasks.values())
    } catch (error) {
      await this.stop({ drain: 0 })
      throw error
    }
  }

  /**
   * Stops firing: claims nothing more, keeps the leases of running tasks alive until they end, at most for `drain`.
   * Idempotent, also before the first start; never rejects for what a task or the store does.
   *
   * @throws InvalidOptionError
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const drainMs = resolveDrain(options)
    const node = this.#node
    if (node === null) return
    this.#stopping ??= node.stop(drainMs).finally(() => {
      if (node.isAtRest) this.#nodes.delete(node)
      this.#node = null
      this.#stopping = null
    })
    await this.#stopping
  }

  /**
   * What became of the slots of a task, the latest first: those that ran and those that did not, with the reason. Works
   * without {@link start}, and for tasks of other processes.
   *
   * @throws InvalidOptionError, StoreUnavailableError, StoreUnusableError
   */
  async history(name: string, options: HistoryOptions = {}): Promise<RunHistoryEntry[]> {
    const limit = resolveHistoryLimit(options)
    return await this.#historyOf(name, await readTask(this.#context, name), limit)
  }

  /** All tasks of this namespace, by name, whoever has them. @throws StoreUnavailableError, StoreUnusableError */
  async list(): Promise<TaskSummary[]> {
    const records = await askStore(this.#context, 'list the tasks', (call) =>
      this.#context.session.tasks.inspect(null, call),
    )
    return toSummaries(records.filter((record) => record !== null))
  }

  /**
   * How a task stands: its next slots, its run under way, what became of the last ones. Works without {@link start}, and
   * for tasks of other processes.
   *
   * @returns null if the store knows no such task
   * @throws InvalidOptionError, StoreUnavailableError, StoreUnusableError
   */
  async status(name: string): Promise<TaskStatus | null> {
    const record = await readTask(this.#context, name)
    if (record === null) return null
    const lanes = await readLanes(this.#context, name, record)
    return toStatus(record, lanes, await this.#historyOf(name, record, 1_000))
  }

  /**
   * Pauses a task for the whole fleet, until {@link resume}: its slots are skipped, and recorded so. A run under way goes
   * on. Idempotent.
   *
   * @throws InvalidOptionError, UnknownTaskError, StoreUnavailableError, StoreUnusableError
   */
  async pause(name: string, options: ControlOptions = {}): Promise<ControlOutcome> {
    return requestControl(this.#context, 'pause', name, options)
  }

  /** Ends a pause: the next slot runs; what was skipped stays skipped. As {@link pause}. */
  async resume(name: string, options: ControlOptions = {}): Promise<ControlOutcome> {
    return requestControl(this.#context, 'resume', name, options)
  }

  /**
   * Asks the run under way to stop, on whatever node it is: its signal is aborted within one heartbeat. It is not
   * repeated, and the next slot comes as usual. As {@link pause}.
   */
  async cancel(name: string, options: CancelOptions = {}): Promise<CancelOutcome> {
    return requestCancel(this.#context, name, options)
  }

  /**
   * Runs a task now, once, on whatever node has it: also while it is paused, and beside its schedule. It waits for a run
   * under way; slots that come due while it runs are overlapped by it. Its `slot` is when it was asked for. As {@link pause}.
   *
   * @throws SchedulerStateError if it is no task of a scheduler, or too many are waiting
   */
  async trigger(name: string, options: ControlOptions = {}): Promise<ControlOutcome> {
    const outcome = await orderRun(this.#context, name, options)
    this.#node?.lookAgain()
    return outcome
  }

  /**
   * Runs decided slots of a range again, or for the first time if they were missed: the oldest first, one after the other,
   * like as many calls of {@link trigger} with those slots. As {@link pause}.
   *
   * @throws InvalidOptionError if no decided slot is in it, or more than 10,000; SchedulerStateError
   */
  async backfill(name: string, options: BackfillOptions): Promise<ControlOutcome> {
    const outcome = await orderRange(this.#context, name, options)
    this.#node?.lookAgain()
    return outcome
  }

  /** Stops with the usual drain. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #historyOf(name: string, record: TaskRecord | null, limit: number): Promise<RunHistoryEntry[]> {
    const task = toStoredKey('name', name)
    const log = await readLog(this.#context, name, { task, record, limit })
    // As the fleet has it: this process may still, or again, have another one.
    const read = record === null ? (this.#tasks.get(name)?.[0] ?? null) : readingOf(record)
    return toHistory(name, log, read, limit)
  }

  /** The service below closes. */
  async #close(): Promise<void> {
    await this.stop({ drain: 0 })
    for (const node of this.#nodes) node.close()
  }
}
