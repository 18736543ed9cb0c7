import { Alarm } from './alarm.ts'
import type { Clock } from './clock.ts'

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
  readonly #alarm: Alarm

  constructor(clock: Clock) {
    this.#clock = clock
    this.#alarm = new Alarm(clock, () => this.#beat())
  }

  /** How many are kept alive. */
  get size(): number {
    return this.#members.size
  }

  /** Adds a member, or looks again at one whose due time has changed. */
  watch(member: Renewable): void {
    this.#members.add(member)
    this.#alarm.setFor(member.renewalDueAt)
  }

  forget(member: Renewable): void {
    this.#members.delete(member)
    if (this.#members.size === 0) this.#alarm.off()
  }

  /** Renews what is due, and what would be due soon, in one go. */
  #beat(): void {
    const now = this.#clock.monotonic()
    let next = Infinity
    for (const member of this.#members) {
      if (member.renewalDueAt - member.renewalSlackMs <= now) member.renew()
      next = Math.min(next, member.renewalDueAt)
    }
    this.#alarm.setFor(next)
  }
}
