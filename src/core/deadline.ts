import { type Clock, type Moment, momentOf, type Timer } from './clock.ts'

/** How much earlier than the store a holder stops trusting its lease: clock rates may differ by this much. */
export function safetyMargin(remainingMs: number): number {
  return Math.max(10, remainingMs * 0.01)
}

/**
 * The local moment after which a grant is no longer trusted: counted from just before the answered request was sent,
 * by what the answer said remains, less the margin. It moves only when the store has confirmed, and never back.
 *
 * It is past as soon as either clock says so: a suspended machine freezes the monotonic clock, a stepped wall clock
 * errs towards a loss.
 */
export class Deadline {
  readonly #clock: Clock
  #monotonic = -Infinity
  #wall = -Infinity

  constructor(clock: Clock, sentAt: Moment, remainingMs: number) {
    this.#clock = clock
    this.confirm(sentAt, remainingMs)
  }

  /** Moves the deadline after an answer of the store. An older answer that comes in later moves nothing. */
  confirm(sentAt: Moment, remainingMs: number): void {
    const trustedMs = remainingMs - safetyMargin(remainingMs)
    const monotonic = sentAt.monotonic + trustedMs
    if (monotonic <= this.#monotonic) return
    this.#monotonic = monotonic
    this.#wall = sentAt.wall + trustedMs
  }

  /** Trusted time left, 0 once it is past. */
  get remainingMs(): number {
    const now = momentOf(this.#clock)
    return Math.max(0, Math.min(this.#monotonic - now.monotonic, this.#wall - now.wall))
  }

  get isPast(): boolean {
    return this.remainingMs <= 0
  }
}

/**
 * Calls back when a deadline is about to pass: early by the margin, since a timer can only be late. Looks at least once
 * a second, since a suspended machine freezes the timers' clock too, and follows the deadline as it moves.
 */
export class DeadlineWatch {
  readonly #clock: Clock
  readonly #deadline: Deadline
  readonly #onPassed: () => void
  #timer: Timer | undefined

  constructor(clock: Clock, deadline: Deadline, onPassed: () => void) {
    this.#clock = clock
    this.#deadline = deadline
    this.#onPassed = onPassed
    this.#arm()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    const left = this.#deadline.remainingMs - timerLead
    if (left <= 0) return this.#onPassed()
    this.#timer = this.#clock.setTimer(Math.min(left, longestLook), () => this.#arm())
  }
}

const longestLook = 1_000
const timerLead = 10
