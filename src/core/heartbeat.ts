import type { Clock, Timer } from './clock.ts'

/** Something that has to be renewed again and again. */
export interface Renewable {
  /** When the next renewal is due, on the monotonic clock; `Infinity` while one is in the air or none is wanted. */
  readonly renewalDueAt: number
  /** How much earlier than due it may be renewed, so that many are renewed in one batch. */
  readonly renewalSlackMs: number
  /** Starts a renewal. Sets {@link renewalDueAt} before it returns. Never throws. */
  renew(): void
}

/** One timer for all leases and runs of a service. */
export class Heartbeat {
  readonly #clock: Clock
  readonly #members = new Set<Renewable>()
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many are kept alive. */
  get size(): number {
    return this.#members.size
  }

  /** Adds a member, or looks again at one whose due time has changed. */
  watch(member: Renewable): void {
    this.#members.add(member)
    this.#armFor(member.renewalDueAt)
  }

  forget(member: Renewable): void {
    this.#members.delete(member)
    if (this.#members.size === 0) this.#disarm()
  }

  /** Renews what is due, and what would be due soon, in one go. */
  #beat(): void {
    this.#disarm()
    const now = this.#clock.monotonic()
    let next = Infinity
    for (const member of this.#members) {
      if (member.renewalDueAt - member.renewalSlackMs <= now) member.renew()
      next = Math.min(next, member.renewalDueAt)
    }
    this.#armFor(next)
  }

  #armFor(dueAt: number): void {
    if (dueAt >= this.#timerAt) return
    this.#disarm()
    this.#timerAt = dueAt
    this.#timer = this.#clock.setTimer(Math.max(0, dueAt - this.#clock.monotonic()), () => this.#beat())
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }
}
