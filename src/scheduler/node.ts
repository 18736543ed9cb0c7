import { isFinal } from '../core/errors.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { storeError } from '../core/store-call.ts'
import { Attendance } from './attendance.ts'
import { ControlWatch } from './control-watch.ts'
import { createTask } from './create-task.ts'
import { createDesk, type Desk } from './desk.ts'
import { drainWithin } from './drain.ts'
import type { LogPurge } from './log-purge.ts'
import type { ResolvedTaskSchedulerOptions } from './scheduler-options.ts'
import type { Task } from './task.ts'
import type { TaskDefinition } from './task-options.ts'
import type { TaskHandler } from './task-run.ts'

/** One node of the fleet, from start to stop: the tasks of a scheduler, and the timers that they share. */
export class Node {
  readonly #desk: Desk
  readonly #attendance: Attendance
  readonly #control: ControlWatch
  readonly #logPurge: LogPurge
  readonly #tasks: Task[] = []
  #hasBegun = false
  #isStopped = false

  constructor(context: ServiceContext, options: ResolvedTaskSchedulerOptions, logPurge: LogPurge) {
    const { clock, random } = context.options
    this.#desk = createDesk({
      locks: options.locks,
      keepAlive: options.keepAlive,
      onClockJump: () => void this.#attendance.lookAgain(),
    })
    this.#attendance = new Attendance(clock, random)
    this.#control = new ControlWatch({
      context,
      storeTime: this.#desk.storeTime,
      everyMs: options.controlEveryMs,
      onChange: () => void this.#attendance.lookAgain(),
    })
    this.#logPurge = logPurge
  }

  /**
   * Registers the tasks, and from there on fires them. A store that is away is tried until it is back.
   *
   * @throws StoreUnusableError if trying again does not help
   */
  async start(tasks: Iterable<readonly [TaskDefinition, TaskHandler]>): Promise<void> {
    for (const [definition, handler] of tasks) this.#tasks.push(createTask(this.#desk, definition, handler))
    this.#desk.agenda.open()
    const faults = await this.#attendance.open(this.#tasks)
    const unusable = faults.find(isFinal)
    if (unusable !== undefined) throw storeError('register the tasks', unusable)
    if (this.#isStopped) return
    for (const task of this.#tasks) task.begin()
    this.#control.open()
    this.#logPurge.open()
    this.#hasBegun = true
  }

  /** No handler runs. */
  get isAtRest(): boolean {
    return this.#tasks.every((task) => task.isAtRest)
  }

  /** One more task. */
  add(definition: TaskDefinition, handler: TaskHandler): void {
    const task = createTask(this.#desk, definition, handler)
    this.#tasks.push(task)
    this.#attendance.add(task)
    if (this.#hasBegun) task.begin()
  }

  /** Somebody in this process has asked for something: looks at once. */
  lookAgain(): void {
    if (this.#hasBegun) void this.#attendance.lookAgain()
  }

  /** Claims nothing more, lets what runs end, and aborts it after a time. Never rejects. */
  async stop(drainMs: number): Promise<void> {
    this.#isStopped = true
    this.#attendance.close()
    this.#control.close()
    this.#logPurge.close()
    this.#desk.agenda.close()
    this.#desk.lapses.close()
    await drainWithin(this.#desk.context.options.clock, this.#tasks, drainMs)
    this.#desk.outage.end()
  }

  /** The service closes: nothing of it is left, except handlers that do not end. After {@link stop}. */
  close(): void {
    for (const task of this.#tasks) task.close()
  }
}
