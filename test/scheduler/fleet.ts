import {
  LockService,
  onEvent,
  type RunHistoryEntry,
  type TaskHandler,
  type TaskOptions,
  type TaskRun,
  TaskScheduler,
  type TaskSchedulerOptions,
} from 'leasehold'
import type { Driver } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'
import { expect, onTestFinished } from 'vitest'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { rest, VirtualTime, type WorkerClock } from '../core/virtual-time.ts'
import { TestLink } from './test-link.ts'

/** What a handler noted down: which node ran what, when. */
export interface Note {
  readonly node: string
  readonly task: string
  /** ISO text, or seconds after the beginning: see {@link Fleet.seconds}. */
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  readonly at: number
}

export interface NodeOptions extends Omit<TaskSchedulerOptions, 'locks'> {
  readonly wallOffsetMs?: number
  /** Every timer of this node fires so much too late. */
  readonly timersLateMs?: number
  readonly requestTimeout?: number
  /** Its way to the store. Default: the fleet's driver. */
  readonly driver?: Driver
}

/** One simulated process. */
export interface FleetNode {
  readonly name: string
  readonly clock: WorkerClock
  readonly link: TestLink
  readonly locks: LockService
  readonly tasks: TaskScheduler
  /** Adds a task whose handler notes its run down and then works. */
  runs(task: string, options: TaskOptions, work?: (run: TaskRun, node: FleetNode) => unknown): void
  /** The process is gone from one moment to the next: no timer fires and nothing reaches the store any more. */
  kill(): void
}

let stores = 0

/** Processes that share one store, in virtual time that begins at 2026-01-01T00:00:00Z. */
export class Fleet {
  readonly time: VirtualTime = new VirtualTime()
  readonly storeName: string = `fleet ${++stores}`
  readonly driver: Driver
  readonly notes: Note[] = []
  readonly errors: { readonly task: string | undefined; readonly error: unknown }[] = []
  readonly slotEvents: {
    readonly slot: number
    readonly outcome: string
    readonly reason?: string | undefined
  }[] = []
  readonly endEvents: { readonly slot: number; readonly attempt: number; readonly outcome: string }[] = []
  readonly #nodes: FleetNode[] = []
  readonly #unhandled: unknown[] = []
  readonly #onUnhandled = (reason: unknown): void => {
    this.#unhandled.push(reason)
  }
  readonly #unsubscribe: readonly (() => void)[]
  #isEnded = false

  constructor() {
    this.driver = memoryDriver({ store: this.storeName, now: this.time.storeNow })
    process.on('unhandledRejection', this.#onUnhandled)
    this.#unsubscribe = [
      onEvent('leasehold:scheduler-error', ({ task, error }) => this.errors.push({ task, error })),
      onEvent('leasehold:slot', ({ slot, outcome, reason }) =>
        this.slotEvents.push({ slot, outcome, reason }),
      ),
      onEvent('leasehold:run-end', ({ slot, attempt, outcome }) =>
        this.endEvents.push({ slot, attempt, outcome }),
      ),
    ]
    onTestFinished(async () => {
      if (!this.#isEnded) await this.end()
    })
  }

  /** The store's time now. */
  get now(): number {
    return this.time.storeNow()
  }

  node(options: NodeOptions = {}): FleetNode {
    const {
      wallOffsetMs = 0,
      timersLateMs = 0,
      requestTimeout = 5_000,
      driver = this.driver,
      ...schedulerOptions
    } = options
    const name = `n${this.#nodes.length + 1}`
    const worker = this.time.worker(wallOffsetMs)
    const clock =
      timersLateMs === 0
        ? worker
        : {
            monotonic: () => worker.monotonic(),
            wall: () => worker.wall(),
            setTimer: (...[delayMs, callback, timer]: Parameters<WorkerClock['setTimer']>) =>
              worker.setTimer(delayMs + timersLateMs, callback, timer),
          }
    const link = new TestLink(driver, this.time)
    const random = seededRandom(this.#nodes.length + 1).next
    const locks = new LockService({ driver: link.driver, clock, random, requestTimeout })
    const tasks = new TaskScheduler({ locks, ...schedulerOptions })
    const node: FleetNode = {
      name,
      clock: worker,
      link,
      locks,
      tasks,
      runs: (task, taskOptions, work) =>
        tasks.schedule(
          task,
          taskOptions,
          this.#noting(() => node, work),
        ),
      kill: () => {
        link.isCut = true
        worker.frozen = true
      },
    }
    this.#nodes.push(node)
    return node
  }

  /** Starts nodes one after the other, without letting time pass. */
  async start(...nodes: readonly FleetNode[]): Promise<void> {
    for (const node of nodes) await this.time.until(node.tasks.start(), 60_000)
  }

  async advance(byMs: number): Promise<void> {
    await this.time.advance(byMs)
    await rest()
  }

  /** Lets time pass until the store's clock shows this. */
  async advanceTo(instant: number | string): Promise<void> {
    await this.advance((typeof instant === 'string' ? Date.parse(instant) : instant) - this.now)
  }

  /** The runs that were noted, as `node slot/attempt`, slots in seconds after the beginning. */
  get ran(): string[] {
    return this.notes.map(({ node, slot, attempt }) => `${node} ${this.seconds(slot)}/${attempt}`)
  }

  /** Slots that were run, in seconds after the beginning. */
  get slotsRun(): number[] {
    return this.notes.map(({ slot }) => this.seconds(slot))
  }

  seconds(instant: number | Date): number {
    return (Number(instant) - Date.parse('2026-01-01T00:00:00Z')) / 1_000
  }

  /** The history as `slot/attempt state reason`, the earliest first, without the registration. */
  async history(task: string): Promise<string[]> {
    const entries = await this.entries(task)
    return entries
      .filter(({ state }) => state !== 'registered')
      .map(
        ({ slot, attempt, state, reason }) =>
          `${this.seconds(slot)}/${attempt} ${state}${reason === null ? '' : ` ${reason}`}`,
      )
      .toReversed()
  }

  /** The history as an uninvolved process sees it. */
  async entries(task: string): Promise<RunHistoryEntry[]> {
    const locks = new LockService({ driver: this.driver, clock: this.time.worker() })
    const tasks = new TaskScheduler({ locks })
    try {
      return await this.time.until(tasks.history(task, { limit: 10_000 }))
    } finally {
      await this.time.until(locks.close())
    }
  }

  /** Closes all nodes. Fails if anything of ours is left, or a rejection went unhandled. */
  async end(): Promise<void> {
    this.#isEnded = true
    for (const { clock, link } of this.#nodes) {
      clock.frozen = false
      link.isCut = false
      link.lagMs = 0
    }
    await this.time.until(Promise.all(this.#nodes.map(({ locks }) => locks.close())))
    await rest()
    process.off('unhandledRejection', this.#onUnhandled)
    for (const off of this.#unsubscribe) off()
    for (const { clock, name } of this.#nodes)
      expect(this.time.timers(clock), `timers that ${name} left`).toEqual([])
    expect(this.#unhandled, 'unhandled rejections').toEqual([])
  }

  #noting(
    node: () => FleetNode,
    work: ((run: TaskRun, node: FleetNode) => unknown) | undefined,
  ): TaskHandler {
    return (run) => {
      const { task, slot, attempt, fence } = run
      this.notes.push({ node: node().name, task, slot: slot.getTime(), attempt, fence, at: this.now })
      return work?.(run, node())
    }
  }
}
