import { systemClock, type Timer } from '../../index.ts'

/** A step of the wall clock is noticed at the latest after this. */
const longestSleep = 60_000

/**
 * Fires at the multiples of a period since 1970, at which the whole fleet fires. A timer that is set again and again
 * drifts, and leaves out a multiple now and then; so somebody else's interval timer is only taken for a pulse: the chain
 * goes on while it beats.
 */
export class IntervalChain {
  readonly #periodMs: number
  readonly #fire: (slot: number) => void
  readonly #isWanted: () => boolean
  #timer: Timer | null = null
  #lastPulse = -Infinity

  constructor(periodMs: number, fire: (slot: number) => void, isWanted: () => boolean) {
    this.#periodMs = periodMs
    this.#fire = fire
    this.#isWanted = isWanted
  }

  pulse(): void {
    this.#lastPulse = systemClock.monotonic()
    if (this.#timer === null) this.#arm(this.#next())
  }

  #arm(slot: number): void {
    const inMs = Math.max(0, slot - systemClock.wall())
    const ring = (): void => this.#ring(slot)
    this.#timer = systemClock.setTimer(Math.min(inMs, longestSleep), ring, { keepAlive: false })
  }

  #ring(slot: number): void {
    this.#timer = null
    if (!this.#isWanted() || systemClock.monotonic() - this.#lastPulse > 2.5 * this.#periodMs) return
    const wall = systemClock.wall()
    if (wall < slot) {
      // Not yet, or the clock was set back.
      this.#arm(Math.min(slot, this.#next()))
      return
    }
    this.#arm(this.#next())
    this.#fire(Math.floor(wall / this.#periodMs) * this.#periodMs)
  }

  #next(): number {
    return (Math.floor(systemClock.wall() / this.#periodMs) + 1) * this.#periodMs
  }
}
