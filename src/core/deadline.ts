import { Alarm } from './alarm.ts'
import { type Clock, type Moment, momentOf } from './clock.ts'

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
  readonly #latest: number
  #monotonic = -Infinity
  #wall = -Infinity

  /** @param latest a moment on the monotonic clock that it never goes past */
  constructor(clock: Clock, sentAt: Moment, remainingMs: number, latest: number = Infinity) {
    this.#clock = clock
    this.#latest = latest
    this.confirm(sentAt, remainingMs)
  }

  /** Moves the deadline after an answer of the store. False: it moved nothing, as an older one that comes in later. */
  confirm(sentAt: Moment, remainingMs: number): boolean {
    const monotonic = Math.min(sentAt.monotonic + remainingMs - safetyMargin(remainingMs), this.#latest)
    // Written so that a driver which answers NaN is not believed.
    if (!(monotonic > this.#monotonic)) return false
    this.#monotonic = monotonic
    this.#wall = sentAt.wall + (monotonic - sentAt.monotonic)
    return true
  }

  /** Trusted time left at a moment, 0 once it is past. */
  remainingAt(now: Moment): number {
    return Math.max(0, Math.min(this.#monotonic - now.monotonic, this.#wall - now.wall))
  }

  /** Trusted time left now. */
  get remainingMs(): number {
    return this.remainingAt(momentOf(this.#clock))
  }
}

/** Something that is trusted until a deadline. */
export interface Trusted {
  readonly deadline: Deadline
  /** Called once, shortly before the deadline or as soon after it as the process runs again. Never throws. */
  deadlinePassed(): void
}

/**
 * Tells when deadlines are about to pass: early by a little, since a timer can only be late. One timer for all, set to
 * the earliest deadline but at most a second ahead: a suspended machine freezes the timers' clock as well, so somebody
 * has to look at the other one.
 */
export class DeadlineWatch {
  readonly #clock: Clock
  readonly #members = new Set<Trusted>()
  readonly #alarm: Alarm

  constructor(clock: Clock) {
    this.#clock = clock
    this.#alarm = new Alarm(clock, () => this.#look())
  }

  watch(member: Trusted): void {
    this.#members.add(member)
    this.#lookIn(member.deadline.remainingMs - timerLead)
  }

  forget(member: Trusted): void {
    this.#members.delete(member)
    if (this.#members.size === 0) this.#alarm.off()
  }

  #look(): void {
    const now = momentOf(this.#clock)
    let next = longestLook
    for (const member of this.#members) {
      const left = member.deadline.remainingAt(now) - timerLead
      if (left > 0) {
        next = Math.min(next, left)
      } else {
        this.#members.delete(member)
        member.deadlinePassed()
      }
    }
    if (this.#members.size > 0) this.#lookIn(next)
  }

  #lookIn(leftMs: number): void {
    this.#alarm.setIn(Math.min(Math.max(leftMs, 0), longestLook))
  }
}

const longestLook = 1_000
const timerLead = 10
