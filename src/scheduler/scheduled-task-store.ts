import type { Dependent } from '../core/dependents.ts'
import { ClosedError, InvalidOptionError, quoted } from '../core/errors.ts'
import { contextOf, type LockService } from '../core/lock-service.ts'
import { readOptions } from '../core/read-options.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { storeError } from '../core/store-call.ts'
import { Attendance } from './attendance.ts'
import { createDesk, type Desk } from './desk.ts'
import { drainWithin } from './drain.ts'
import {
  assertDue,
  firedSlot,
  type FireOptions,
  type ResolvedFire,
  resolveFire,
  type SlotTiming,
} from './fire-options.ts'
import { FiredTask } from './fired-task.ts'
import { LockedRuns } from './locked-runs.ts'
import { LogPurge } from './log-purge.ts'
import type { Schedule } from './schedule.ts'
import {
  resolveDrain,
  resolveTaskSchedulerOptions,
  type StopOptions,
  type TaskSchedulerOptions,
} from './scheduler-options.ts'
import {
  resolveSchedule,
  type ScheduleTiming,
  type TaskDefaults,
  type TaskDefinition,
} from './task-options.ts'
import type { TaskRun } from './task-run.ts'

export interface ScheduledTaskStoreOptions extends Pick<
  TaskSchedulerOptions,
  'ttl' | 'heartbeat' | 'maxLifetime' | 'logRetention'
> {
  /** The service whose store and namespace the tasks live in. Close it after this was stopped. */
  readonly locks: LockService
  /** The time zone of crons that name none. The same for the whole fleet. Default `'UTC'`. */
  readonly timeZone?: string | undefined
}

const optionNames = ['locks', 'timeZone', 'logRetention', 'ttl', 'heartbeat', 'maxLifetime'] as const

/** What a fired function is given. */
export interface FiredRun extends Pick<
  TaskRun,
  'task' | 'fence' | 'signal' | 'remainingMs' | 'isHeld' | 'assertHeld'
> {
  /** The nominal instant that was fired; null where the name is merely locked. */
  readonly slot: Date | null
}

/**
 * For code that something else fires, in every process of a fleet: another scheduler, an interval, a crontab, a
 * webhook. It decides which process runs it.
 *
 * @example
 * const store = new ScheduledTaskStore({ locks })
 * cron.schedule('0 2 * * *', () => store.run('close-books', closeBooks, { cron: '0 2 * * *' }))
 */
export class ScheduledTaskStore {
  readonly #context: ServiceContext
  readonly #desk: Desk
  readonly #defaults: TaskDefaults
  readonly #attendance: Attendance
  readonly #logPurge: LogPurge
  readonly #locked: LockedRuns
  readonly #tasks = new Map<string, FiredTask>()
  /** To read a cron takes a while, and each fire names it again. */
  readonly #crons = new Map<string, Schedule>()
  readonly #dependent: Dependent = { close: () => this.#close() }
  #isOpen = false
  #stopping: Promise<void> | null = null

  /** @throws InvalidOptionError */
  constructor(options: ScheduledTaskStoreOptions) {
    const { locks, timeZone, lease, logRetentionMs } = resolveTaskSchedulerOptions(
      readOptions('ScheduledTaskStore', options, optionNames),
    )
    this.#context = contextOf(locks)
    this.#defaults = { service: this.#context.options, timeZone, lease }
    const probe = timeZone === 'UTC' ? { every: '24h' as const } : { cron: '@daily' }
    this.#resolve('any', probe)
    const { clock, random } = this.#context.options
    this.#attendance = new Attendance(clock, random)
    this.#desk = createDesk({
      locks,
      keepAlive: false,
      onClockJump: () => void this.#attendance.lookAgain(),
    })
    this.#logPurge = new LogPurge(this.#context, logRetentionMs)
    this.#locked = new LockedRuns(locks)
  }

  /**
   * Runs a function, unless another process of the fleet does or did.
   *
   * With a slot, a cron or an interval it decides by slot: each slot runs once, however short the work and however late
   * a process comes; the decisions are kept, and `TaskScheduler.history(name)` lists them. Without, the name is merely
   * locked while the function runs, under `name` as its key: a process that comes after it has ended runs it again.
   *
   * A slot that has not come on the store's clock is waited for: this host's clock is fast.
   *
   * @param name shared by the whole fleet
   * @returns `'skipped'` if another ran it, runs it, or decided that it does not run
   * @throws what the function throws; InvalidOptionError; StoreUnavailableError, StoreUnusableError if it could not be
   *   found out, ClosedError after {@link stop}
   */
  async run(
    name: string,
    fn: (run: FiredRun) => unknown,
    options: FireOptions = {},
  ): Promise<'ran' | 'skipped'> {
    if (typeof fn !== 'function')
      throw new InvalidOptionError('fn', 'The second argument must be a function.')
    const { definition, slot, lease, startDeadlineMs } = this.#resolve(name, options)
    this.#assertOpen(name)
    if (definition === null) return this.#locked.run(name, fn, lease)
    const wall = this.#context.options.clock.wall()
    if (slot !== null) assertDue(slot, wall)
    const fired = this.#taskOf(definition)
    const hasRun = await fired.fire(slot ?? firedSlot(definition, wall), fn, startDeadlineMs)
    return hasRun ? 'ran' : 'skipped'
  }

  /**
   * Wraps a function for any scheduler: called as before, with the same arguments, each call runs it by {@link run}.
   *
   * @throws InvalidOptionError at once
   */
  guard<Args extends readonly unknown[]>(
    name: string,
    fn: (...args: Args) => unknown,
    options: FireOptions = {},
  ): (...args: Args) => Promise<'ran' | 'skipped'> {
    this.#resolve(name, options)
    if (typeof fn !== 'function')
      throw new InvalidOptionError('fn', 'The second argument must be a function.')
    return (...args) => this.run(name, () => fn(...args), options)
  }

  /**
   * The next slot of a cron or an interval, for a timer of your own.
   *
   * @param after a `Date` or milliseconds since the epoch. Default: now on this host's clock
   * @throws InvalidOptionError also for what has no next slot
   */
  nextSlot(
    timing: Omit<SlotTiming, 'slot'>,
    after: Date | number = this.#context.options.clock.wall(),
  ): Date {
    const { cron, every, timeZone } = timing
    const slot = this.#scheduleOf({ cron, every, timeZone }).next(Number(after))
    if (Number.isFinite(slot)) return new Date(slot)
    throw new InvalidOptionError('after', 'There is no slot after this.')
  }

  /**
   * Makes a task with a cron or an interval known before its first fire, so that operators see it and slots that no
   * process fires have a reason.
   *
   * @throws InvalidOptionError, StoreUnavailableError, StoreUnusableError
   */
  async announce(name: string, options: FireOptions): Promise<void> {
    const { definition } = this.#resolve(name, options)
    this.#assertOpen(name)
    if (definition === null) {
      throw new InvalidOptionError('cron', 'Only what has a slot can be announced: give cron or every.')
    }
    const fault = await this.#taskOf(definition).announce()
    if (fault !== null) throw storeError(`announce ${quoted(name)}`, fault)
  }

  /**
   * Runs nothing more, keeps the leases of what runs alive until it ends, at most for `drain`. Idempotent; never rejects
   * for what a function or the store does.
   *
   * @throws InvalidOptionError
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const drainMs = resolveDrain(options)
    this.#stopping ??= this.#stop(drainMs)
    await this.#stopping
  }

  /** Stops with the usual drain. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #stop(drainMs: number): Promise<void> {
    this.#attendance.close()
    this.#logPurge.close()
    await drainWithin(this.#context.options.clock, [...this.#tasks.values(), this.#locked], drainMs)
    this.#desk.outage.end()
  }

  async #close(): Promise<void> {
    await this.stop({ drain: 0 })
    for (const task of this.#tasks.values()) task.close()
  }

  #resolve(name: string, options: FireOptions): ResolvedFire {
    return resolveFire(name, options, this.#defaults, (timing) => this.#scheduleOf(timing))
  }

  #scheduleOf(timing: ScheduleTiming): Schedule {
    const { cron, timeZone = this.#defaults.timeZone, every } = timing
    const isCron = typeof cron === 'string' && typeof timeZone === 'string' && every === undefined
    const id = isCron ? `${timeZone}\n${cron}` : null
    const known = id === null ? undefined : this.#crons.get(id)
    if (known !== undefined) return known
    const schedule = resolveSchedule(timing, this.#defaults.timeZone)
    if (id !== null) this.#crons.set(id, schedule)
    return schedule
  }

  #taskOf(definition: TaskDefinition): FiredTask {
    const id = JSON.stringify([definition.name, definition.text])
    const known = this.#tasks.get(id)
    if (known !== undefined) return known
    const task = new FiredTask(this.#desk, definition)
    this.#tasks.set(id, task)
    this.#attendance.join(task)
    return task
  }

  #assertOpen(name: string): void {
    if (this.#stopping !== null) {
      throw new ClosedError(
        `${quoted(name)} was fired after this ScheduledTaskStore was stopped: it did not run.`,
      )
    }
    if (this.#isOpen) return
    this.#context.dependents.add(this.#dependent)
    this.#isOpen = true
    this.#logPurge.open()
  }
}
