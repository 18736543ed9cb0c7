import type { Lease, TaskRun } from 'leasehold'
import type { Journal } from '../history/journal.ts'
import { now } from '../history/records.ts'
import { hostWall, type SkewedClock } from './skewed-clock.ts'

/** A lease, or the view that a handler has of its run. */
type Trusted = Pick<Lease | TaskRun, 'fence' | 'remainingMs'>

/** Writes down what a holder believes. */
export class Witness {
  readonly #journal: Journal
  readonly #clock: SkewedClock

  constructor(journal: Journal, clock: SkewedClock) {
    this.#journal = journal
    this.#clock = clock
  }

  granted(of: string, held: Trusted, ask: number): void {
    const before = now()
    const { until, at } = this.#look(held.remainingMs, before)
    this.#journal.write({ is: 'granted', of, fence: held.fence, until, ask }, at)
  }

  runBegun(of: string, run: TaskRun): void {
    const before = now()
    const { until, at } = this.#look(run.remainingMs, before)
    const name = { slot: run.slot.getTime(), attempt: run.attempt }
    this.#journal.write({ is: 'granted', of, fence: run.fence, until, run: name, wall: hostWall() }, at)
  }

  /** Looks at what is left, again. */
  looked(of: string, held: Trusted): void {
    const before = now()
    this.confirmed(of, held.fence, held.remainingMs, before)
  }

  confirmed(of: string, fence: number, remainingMs: number, before: number = now()): void {
    if (remainingMs <= 0) return
    const { until, at } = this.#look(remainingMs, before)
    this.#journal.write({ is: 'trusted', of, fence, until }, at)
  }

  /** A pause of the process between the two readings makes the belief shorter, never longer than it was. */
  #look(remainingMs: number, before: number): { until: number; at: number } {
    return { until: before + this.#clock.toHostMs(remainingMs), at: now() }
  }
}
