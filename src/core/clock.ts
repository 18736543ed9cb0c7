import { AsyncResource } from 'node:async_hooks'
import { requireOption } from './errors.ts'

/** A timer that has been set. */
export interface Timer {
  /** Idempotent; the callback is not called afterwards. */
  cancel(): void
}

export interface TimerOptions {
  /** Whether the timer keeps the process alive. Default false: timers of locks never do. */
  readonly keepAlive?: boolean | undefined
}

/** The only source of time in core and scheduler, so that tests and the simulator can replace it. */
export interface Clock {
  /** Milliseconds on a clock that never steps, with fractions; its zero means nothing. */
  monotonic(): number
  /** Milliseconds since the epoch on this host's wall clock, which may step. */
  wall(): number
  /** Calls back once, `delayMs` (0 or more, no upper limit) from now on the monotonic clock. */
  setTimer(delayMs: number, callback: () => void, options?: TimerOptions): Timer
}

/** One reading of both clocks. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentOf(clock: Clock): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() }
}

/**
 * The same clock, with every callback in the asynchronous context of this call. Timers that many share would otherwise
 * carry the context of whoever happened to set them (its ambient lease, its trace) into the listeners of all others.
 */
export function inOwnContext(clock: Clock): Clock {
  const context = new AsyncResource('LEASEHOLD')
  return {
    monotonic: () => clock.monotonic(),
    wall: () => clock.wall(),
    setTimer: (delayMs, callback, options) =>
      clock.setTimer(delayMs, () => context.runInAsyncScope(callback), options),
  }
}

/** Resolves after so much time. Keeps the process alive: somebody waits for what comes after it. */
export function sleep(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimer(Math.max(0, milliseconds), resolve, { keepAlive: true })
  })
}

/** Node's own timers fire at once when asked for more than this. */
const longestNodeTimer = 2 ** 31 - 1

/** The host's clocks and Node's timers. */
export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  setTimer(delayMs, callback, options) {
    requireOption(typeof delayMs === 'number', 'delayMs', 'a number of milliseconds')
    requireOption(typeof callback === 'function', 'callback', 'a function')
    return new SystemTimer(delayMs, callback, options?.keepAlive === true)
  },
}

/** Goes the distance in chunks that Node can time, on the monotonic clock. */
class SystemTimer implements Timer {
  readonly #dueAt: number
  readonly #callback: () => void
  readonly #keepAlive: boolean
  #handle: NodeJS.Timeout | undefined

  constructor(delayMs: number, callback: () => void, keepAlive: boolean) {
    this.#dueAt = performance.now() + delayMs
    this.#callback = callback
    this.#keepAlive = keepAlive
    this.#arm(delayMs)
  }

  cancel(): void {
    clearTimeout(this.#handle)
    this.#handle = undefined
  }

  #arm(delayMs: number): void {
    const chunk = Math.min(Math.max(Math.ceil(delayMs), 0), longestNodeTimer)
    this.#handle = setTimeout(() => this.#fire(), chunk)
    if (!this.#keepAlive) this.#handle.unref()
  }

  #fire(): void {
    const left = this.#dueAt - performance.now()
    // Node may fire a fraction of a millisecond early; only a timer cut into chunks has more left than that.
    if (left > 1) return this.#arm(left)
    this.#handle = undefined
    this.#callback()
  }
}
