import { type Clock, systemClock } from 'leasehold'
import type { ClockError } from './messages.ts'

/** A clock that runs wrong and whose wall clock can be stepped. Its timers keep the host's time. */
export class SkewedClock implements Clock {
  readonly #error: ClockError
  #wallOffsetMs: number

  constructor(error: ClockError) {
    this.#error = error
    this.#wallOffsetMs = error.wallOffsetMs
  }

  monotonic(): number {
    return systemClock.monotonic() * this.#error.monotonicRate
  }

  wall(): number {
    const startedAt = performance.timeOrigin
    return startedAt + (systemClock.wall() - startedAt) * this.#error.wallRate + this.#wallOffsetMs
  }

  setTimer: Clock['setTimer'] = (delayMs, callback, options) =>
    systemClock.setTimer(delayMs / this.#error.monotonicRate, callback, options)

  step(ms: number): void {
    this.#wallOffsetMs += ms
  }

  /** Milliseconds of the host's clock that so many of this one take. */
  toHostMs(ms: number): number {
    return ms / this.#error.monotonicRate
  }
}
