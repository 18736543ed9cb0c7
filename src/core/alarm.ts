import type { Clock, Timer } from './clock.ts'

/** One timer for many moments: it is set to the earliest that was asked for, and rings once. */
export class Alarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #timer: Timer | undefined
  #at = Infinity

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Rings at this moment on the monotonic clock, unless it does before. */
  setFor(at: number): void {
    if (at >= this.#at) return
    this.off()
    this.#at = at
    this.#timer = this.#clock.setTimer(Math.max(0, at - this.#clock.monotonic()), () => {
      this.off()
      this.#ring()
    })
  }

  off(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#at = Infinity
  }
}
