import type { Clock, Timer, TimerOptions } from './clock.ts'

/** One timer for many moments: it is set to the earliest that was asked for, and rings once. */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  readonly #options: TimerOptions | undefined
  #timer: Timer | undefined
  #at = Infinity

  constructor(clock: Clock, ring: () => void, options?: TimerOptions) {
    this.#clock = clock
    this.#ring = ring
    this.#options = options
  }

  /** Rings at this moment on the monotonic clock, unless it does before. */
  setFor(at: number): void {
    if (at < this.#at) this.#set(at, Math.max(0, at - this.#clock.monotonic()))
  }

  /** Rings when this time is over, unless it does before. */
  setIn(delayMs: number): void {
    const at = this.#clock.monotonic() + delayMs
    if (at < this.#at) this.#set(at, delayMs)
  }

  off(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#at = Infinity
  }

  #set(at: number, delayMs: number): void {
    this.off()
    this.#at = at
    const ring = (): void => {
      this.off()
      this.#ring()
    }
    this.#timer = this.#clock.setTimer(delayMs, ring, this.#options)
  }
}
