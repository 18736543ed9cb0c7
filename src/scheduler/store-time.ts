import type { Clock, Moment } from '../core/clock.ts'

interface Sample {
  /** The store's time less our monotonic clock. */
  readonly offset: number
  /** It may be off by this much: half the round trip that brought it. */
  readonly errorMs: number
  /** On the monotonic clock. */
  readonly takenAt: number
}

/** How fast two clocks may drift apart. */
const drift = 1e-4
/** Smaller corrections are not worth setting timers anew. */
const noticeable = 5
/** A slow round trip must not delay everything by half its time. */
const latestWake = 1_000

/**
 * The store's clock as this process can know it: an offset to our monotonic clock, from answers that carry the store's
 * time. It was read somewhere between question and answer, so the middle is taken, and the best answer of late wins.
 * Our wall clock plays no part.
 */
export class StoreTime {
  readonly #clock: Clock
  readonly #onStep: () => void
  #best: Sample | undefined

  /** @param onStep called when the estimate has moved, so that timers must be set anew */
  constructor(clock: Clock, onStep: () => void) {
    this.#clock = clock
    this.#onStep = onStep
  }

  /** False before the first answer, and after {@link distrust}. */
  get isKnown(): boolean {
    return this.#best !== undefined
  }

  /** Takes the store's time from an answer that has just come in. */
  note(sentAt: Moment, storeNow: number): void {
    if (!Number.isFinite(storeNow)) return
    const takenAt = this.#clock.monotonic()
    const offset = storeNow - (sentAt.monotonic + takenAt) / 2
    const errorMs = (takenAt - sentAt.monotonic) / 2
    const best = this.#best
    if (best !== undefined) {
      const bestErrorMs = best.errorMs + (takenAt - best.takenAt) * drift
      const agree = Math.abs(offset - best.offset) <= errorMs + bestErrorMs + 1
      if (agree && errorMs > bestErrorMs) return
    }
    this.#best = { offset, errorMs, takenAt }
    if (best === undefined || Math.abs(offset - best.offset) > noticeable) this.#onStep()
  }

  /** Our clocks have jumped against each other: the machine was suspended, so the monotonic one stood still. */
  distrust(): void {
    this.#best = undefined
  }

  /** The store's time, with fractions of a millisecond; NaN while it is not known. */
  now(): number {
    return this.#clock.monotonic() + (this.#best?.offset ?? Number.NaN)
  }

  /** How much later than an instant to act so that the store agrees that it has come: half a round trip. */
  get wakeLateMs(): number {
    return Math.min(this.#best?.errorMs ?? 0, latestWake)
  }
}
