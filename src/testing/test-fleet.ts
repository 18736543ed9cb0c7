import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { type Duration, parseDuration } from '../core/duration.ts'
import type { Driver } from '../driver/driver.ts'
import { memoryDriver } from '../drivers/memory/index.ts'
import type { TaskHandler } from '../scheduler/task-run.ts'
import { FakeClock } from './fake-clock.ts'
import { FleetNode, type TestNode, type TestNodeOptions } from './test-node.ts'

export interface TestFleetOptions {
  /** When its time begins: a `Date`, milliseconds since the epoch, or an ISO text. Default `'2026-01-01T00:00:00Z'`. */
  readonly startAt?: Date | number | string | undefined
  /**
   * How long to wait, in real time, for a handler that does something real: a query, a request, a file. After that it is
   * taken to wait for virtual time, and time goes on without it. Default `'1s'`, at most 10 min.
   */
  readonly patience?: Duration | undefined
  /** Of everything random: the same seed, the same course. Default 1. */
  readonly seed?: number | undefined
}

/** A run whose handler threw. */
export interface TestFailure {
  readonly task: string
  readonly slot: Date
  readonly error: unknown
}

/** A handler that is under way. */
interface Running {
  readonly node: FleetNode
  /** In how many `sleep()`s it is. */
  sleeps: number
  /** It did not end for so long that it seems to wait for virtual time. */
  isGivenUp: boolean
}

/** Kept, so that whoever replaces the global timers in a test does not stop this. */
const { setImmediate: nextTurn, setTimeout: realTimer, performance: realClock } = globalThis
/** Turns of the event loop after which a handler does something that takes a while. */
const quickTurns = 50

/**
 * Scheduled tasks and locks in virtual time, for tests of code that uses them: one process or several, on one store in
 * memory. A day passes in moments, and only when the test says so. Needs no test framework, and works under any.
 *
 * @example
 * ```ts
 * await using fleet = new TestFleet()
 * const { tasks } = fleet.node()
 * tasks.schedule('digest', { cron: '0 8 * * *' }, sendDigest)
 * await fleet.start()
 * await fleet.advance('24h')
 * ```
 */
export class TestFleet {
  /** The one clock of the store and all nodes, for other things that take one. */
  readonly clock: FakeClock
  readonly #driver: Driver
  readonly #patienceMs: number
  readonly #seed: number
  readonly #nodes: FleetNode[] = []
  readonly #running = new Set<Running>()
  readonly #ownRun = new AsyncLocalStorage<Running>()
  readonly #failures: TestFailure[] = []

  /** @throws RangeError, InvalidOptionError */
  constructor(options: TestFleetOptions = {}) {
    const { startAt = '2026-01-01T00:00:00Z', patience = '1s', seed = 1 } = options
    this.clock = new FakeClock({ wall: instantOf(startAt) })
    this.#patienceMs = parseDuration('patience', patience, { min: 0, max: 600_000 })
    this.#seed = seed
    this.#driver = memoryDriver({ store: `test fleet ${randomUUID()}`, now: () => this.clock.wall() })
  }

  /** The time, on all clocks of the fleet. */
  get now(): Date {
    return new Date(this.clock.wall())
  }

  /** The runs whose handlers threw, the earliest first. The scheduler goes on after them, so look here. */
  get failures(): readonly TestFailure[] {
    return this.#failures
  }

  /** One process more. */
  node(options: TestNodeOptions = {}): TestNode {
    const node = new FleetNode(this.clock, this.#driver, this.#seed + this.#nodes.length, options)
    const { tasks } = node
    const schedule = tasks.schedule.bind(tasks)
    Object.assign(tasks, {
      schedule: (...[name, taskOptions, handler]: Parameters<typeof schedule>) =>
        schedule(name, taskOptions, typeof handler === 'function' ? this.#watched(node, handler) : handler),
    })
    this.#nodes.push(node)
    return node
  }

  /** Starts the scheduler of each node that was not started yet. */
  async start(): Promise<void> {
    const starting = this.#nodes.filter(({ isStarted }) => !isStarted)
    for (const node of starting) node.isStarted = true
    await this.until(Promise.all(starting.map(({ tasks }) => tasks.start())))
  }

  /**
   * Lets so much time pass. What is due fires on the way, each at its time, and handlers that can end without time passing
   * have ended before it goes on.
   *
   * @throws InvalidOptionError
   */
  async advance(duration: Duration): Promise<void> {
    const byMs = parseDuration('duration', duration, { min: 0, max: Infinity })
    await this.advanceTo(this.clock.wall() + byMs)
  }

  /**
   * Lets time pass until then, as {@link advance} does.
   *
   * @param instant a `Date`, milliseconds since the epoch, or an ISO text
   * @throws RangeError if that is over
   */
  async advanceTo(instant: Date | number | string): Promise<void> {
    const end = instantOf(instant)
    if (end < this.clock.wall()) {
      throw new RangeError(`It is ${this.now.toISOString()} already: time does not go back.`)
    }
    await this.clock.advance(0)
    await this.#rest()
    while (await this.#step(end));
    await this.clock.advance(end - this.clock.wall())
    await this.#rest()
  }

  /**
   * Lets time pass until a promise is settled, and gives back or throws what it settled to.
   *
   * @param within of virtual time. Default 10 min
   * @throws Error if it takes longer
   */
  async until<Value>(promise: Promise<Value>, within: Duration = '10m'): Promise<Value> {
    const end = this.clock.wall() + parseDuration('within', within, { min: 0, max: Infinity })
    let isSettled = false
    const note = (): void => void (isSettled = true)
    promise.then(note, note)
    await this.clock.advance(0)
    await this.#rest(() => isSettled)
    while (!isSettled && (await this.#step(end, () => isSettled)));
    if (!isSettled) throw new Error(`The promise did not settle until ${this.now.toISOString()}.`)
    return promise
  }

  /** For handlers that take their time: virtual time. */
  async sleep(duration: Duration): Promise<void> {
    const forMs = parseDuration('duration', duration, { min: 0, max: Infinity })
    const run = this.#ownRun.getStore()
    if (run !== undefined) run.sleeps++
    await new Promise<void>((resolve) => this.clock.setTimer(forMs, resolve))
    if (run !== undefined) run.sleeps--
  }

  /** Stops all nodes, crashed ones too, without a drain. Idempotent. */
  async close(): Promise<void> {
    for (const node of this.#nodes) node.revive()
    for (const run of this.#running) run.isGivenUp = true
    await this.until(Promise.all(this.#nodes.map(({ locks }) => locks.close())))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** To the next timer and what it sets off. False if there is none until then. */
  async #step(end: number, isEnough?: () => boolean): Promise<boolean> {
    const [next] = this.clock.timers
    if (next === undefined || this.clock.wall() + next.inMs > end) return false
    await this.clock.advance(Math.max(0, next.inMs))
    await this.#rest(isEnough)
    return true
  }

  #watched(node: FleetNode, handler: TaskHandler): TaskHandler {
    return async (view) => {
      const run: Running = { node, sleeps: 0, isGivenUp: false }
      this.#running.add(run)
      try {
        return await this.#ownRun.run(run, async () => await handler(view))
      } catch (error) {
        this.#failures.push({ task: view.task, slot: view.slot, error })
        throw error
      } finally {
        this.#running.delete(run)
      }
    }
  }

  /** Everything that can happen without time passing has happened, what handlers do in reality included. */
  async #rest(isEnough: () => boolean = () => false): Promise<void> {
    const isBusy = (run: Running): boolean => run.sleeps === 0 && !run.isGivenUp && !run.node.isCrashed
    if (this.#running.size === 0) return
    const begun = realClock.now()
    for (let turns = 0; !isEnough() && [...this.#running].some(isBusy); turns++) {
      if (turns < quickTurns) await turn()
      else await new Promise((resolve) => void realTimer(resolve, 1))
      if (turns >= quickTurns && realClock.now() - begun >= this.#patienceMs) {
        for (const run of this.#running) run.isGivenUp ||= isBusy(run)
      }
    }
    // What has ended is to be recorded too.
    await turn()
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => void nextTurn(resolve))
}

/** @throws RangeError */
function instantOf(instant: Date | number | string): number {
  const milliseconds = new Date(instant).getTime()
  if (Number.isNaN(milliseconds)) {
    throw new RangeError(
      `${JSON.stringify(instant)} is no instant. Write a Date, milliseconds, or an ISO text.`,
    )
  }
  return milliseconds
}
