import type { Clock, Timer, TimerOptions } from '../core/clock.ts'
import { LockService } from '../core/lock-service.ts'
import type { Driver } from '../driver/driver.ts'
import type { TaskSchedulerOptions } from '../scheduler/scheduler-options.ts'
import { TaskScheduler } from '../scheduler/task-scheduler.ts'
import { seededRandom } from './seeded-random.ts'

/** The options of a `TaskScheduler`, except for its service. `controlEvery` is `'1m'` here, for the sake of long tests. */
export interface TestNodeOptions extends Omit<TaskSchedulerOptions, 'locks'> {
  /** Default `'default'`. Nodes of different namespaces have nothing to do with each other. */
  readonly namespace?: string | undefined
}

/** One process of a `TestFleet`, with what it would have made for itself. */
export interface TestNode {
  readonly locks: LockService
  readonly tasks: TaskScheduler
  /**
   * The process is gone from one moment to the next: none of its timers fires, and the store hears nothing from it. Its
   * leases end one ttl after their last renewal. The code of its handlers cannot be ended, and is not waited for.
   */
  crash(): void
}

/** A node as its fleet sees it. */
export class FleetNode implements TestNode {
  readonly locks: LockService
  readonly tasks: TaskScheduler
  readonly #clock: NodeClock
  #isCrashed = false
  isStarted = false

  constructor(clock: Clock, driver: Driver, seed: number, options: TestNodeOptions) {
    const { namespace, ...schedulerOptions } = options
    this.#clock = new NodeClock(clock)
    this.locks = new LockService({
      driver: silentWhile(driver, () => this.#isCrashed),
      clock: this.#clock,
      random: seededRandom(seed).next,
      ...(namespace === undefined ? {} : { namespace }),
    })
    this.tasks = new TaskScheduler({ controlEvery: '1m', ...schedulerOptions, locks: this.locks })
  }

  get isCrashed(): boolean {
    return this.#isCrashed
  }

  crash(): void {
    this.#isCrashed = true
    this.#clock.freeze()
  }

  /** For its end: what it has set and opened is to be taken back. */
  revive(): void {
    this.#isCrashed = false
    this.#clock.thaw()
  }
}

/** The clock of one process; while it is frozen no timer fires. */
class NodeClock implements Clock {
  readonly #clock: Clock
  readonly #due = new Set<() => void>()
  #isFrozen = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  wall(): number {
    return this.#clock.wall()
  }

  setTimer(delayMs: number, callback: () => void, options?: TimerOptions): Timer {
    const fire = (): void => {
      if (this.#isFrozen) this.#due.add(callback)
      else callback()
    }
    // In whole milliseconds, as the store's clock counts: slots then fire at their very instants.
    const timer = this.#clock.setTimer(Math.ceil(delayMs), fire, options)
    return {
      cancel: () => {
        timer.cancel()
        this.#due.delete(callback)
      },
    }
  }

  freeze(): void {
    this.#isFrozen = true
  }

  thaw(): void {
    this.#isFrozen = false
    for (const callback of this.#due) callback()
    this.#due.clear()
  }
}

/** The same driver; while its process is dead no call reaches the store, no answer comes back, and no notice. */
function silentWhile(driver: Driver, isDead: () => boolean): Driver {
  const never = (): Promise<never> => new Promise(() => {})
  const silent = <Port extends object>(port: Port): Port =>
    new Proxy(port, {
      get(target, verb) {
        const call: unknown = Reflect.get(target, verb)
        if (typeof call !== 'function') return call
        return async (...args: unknown[]) => {
          if (isDead()) return never()
          const answer: unknown = await Reflect.apply(call, target, args)
          return isDead() ? never() : answer
        }
      },
    })
  return {
    name: driver.name,
    abilities: driver.abilities,
    open(namespace) {
      const session = driver.open(namespace)
      return {
        locks: silent(session.locks),
        tasks: silent(session.tasks),
        listen: session.listen?.bind(session),
        close: () => session.close(),
      }
    },
  }
}
