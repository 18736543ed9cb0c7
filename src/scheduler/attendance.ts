import type { Clock, Timer } from '../core/clock.ts'
import type { DriverFault } from '../core/errors.ts'
import { Backoff } from './backoff.ts'

/** A task that the store is to be told of. */
export interface Attendee {
  /** Tells the store once that a node with this schedule is there. Null if it has answered. Never rejects. */
  register(): Promise<DriverFault | null>
}

/** How long a node counts as there after it said so. */
export const attendMs = 180_000
/** At least every minute, so that nodes that started together part. */
const longestRound = 60_000

/**
 * Tells the store of all tasks of this node, at first and again at least once a minute, in one batch. The answers
 * measure the store's time, show runs to look after, and heal whatever this node got wrong.
 */
export class Attendance {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #pause: Backoff
  readonly #attendees = new Set<Attendee>()
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  #isOpen = true

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock
    this.#random = random
    this.#pause = new Backoff({ clock, random, shortestMs: 200, longestMs: 10_000 })
  }

  /** Registers the first tasks, once. What fails is tried again later. Answers what failed. */
  async open(attendees: Iterable<Attendee>): Promise<DriverFault[]> {
    for (const attendee of attendees) this.#attendees.add(attendee)
    const faults = await this.#tellAll([...this.#attendees])
    const failed = faults.filter((fault) => fault !== null)
    if (failed.length > 0) void this.lookAgain()
    else this.#planNext()
    return failed
  }

  /** One more task. */
  add(attendee: Attendee): void {
    this.#attendees.add(attendee)
    void this.#tell([attendee])
  }

  /** One more that tells the store for the first time by itself, and is asked to again like all others. */
  join(attendee: Attendee): void {
    this.#attendees.add(attendee)
    if (this.#timer === undefined) this.#planNext()
  }

  /** Tells the store now instead of at the end of the minute. */
  lookAgain(): Promise<void> {
    this.#round ??= this.#tell([...this.#attendees]).finally(() => {
      this.#round = undefined
      this.#planNext()
    })
    return this.#round
  }

  close(): void {
    this.#isOpen = false
    this.#pause.end()
    this.#timer?.cancel()
  }

  /** Until all have been told. */
  async #tell(attendees: readonly Attendee[]): Promise<void> {
    let left = attendees
    while (this.#isOpen && left.length > 0) {
      const faults = await this.#tellAll(left)
      left = left.filter((_, index) => faults[index] !== null)
      if (left.length > 0) await this.#pause.wait()
    }
    this.#pause.reset()
  }

  #tellAll(attendees: readonly Attendee[]): Promise<(DriverFault | null)[]> {
    return Promise.all(attendees.map((attendee) => attendee.register()))
  }

  #planNext(): void {
    this.#timer?.cancel()
    if (!this.#isOpen) return
    const inMs = longestRound * (1 - this.#random() / 6)
    this.#timer = this.#clock.setTimer(inMs, () => void this.lookAgain())
  }
}
