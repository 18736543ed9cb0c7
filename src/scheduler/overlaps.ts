import type { RunRecord } from '../driver/task-driver.ts'
import { groupBy } from './group-by.ts'
import { handedOverTo, placeOf } from './lanes.ts'
import { longestJitterMs } from './policies.ts'
import type { Schedule } from './schedule.ts'

/** What is to be known of a task to read its log. */
export interface TaskRead {
  readonly schedule: Schedule
  /** So much later than its own instant a slot may be claimed, but never after the next one. */
  readonly jitterMs: number
  /** How many runs may overlap; 0 if none may. */
  readonly laneCount: number
  /** The run that has lapsed, at this moment, without anybody having dealt with it yet. Default: there is none. */
  readonly lapsed?: { readonly fence: number; readonly at: number } | null
}

/**
 * A fleet that is there claims a slot within this after the run that was in its way, even if the runner dies with it and
 * the others wait for its lease to lapse: one that was left so much time met no overlap.
 */
const claimMs = 30_000

/** A slot that met an earlier run and was not claimed when the next one came due: that run went on until this at least. */
export function overlapEnd(slot: number, next: number): number {
  return Math.max(slot, next - claimMs)
}

/**
 * Which of the slots that nobody decided met an earlier run: told from the log, since whoever passes them over may have
 * come when that run had long ended.
 */
export class Overlaps {
  readonly #task: TaskRead
  readonly #runs: Timeline
  /** Of each lane. */
  readonly #lanes: readonly Timeline[]

  constructor(task: TaskRead, rows: readonly RunRecord[], laneRows: readonly RunRecord[]) {
    this.#task = task
    // A hand-over takes moments.
    this.#runs = new Timeline(
      rows
        .filter((row) => !isHandOver(row))
        .map((row) => (task.lapsed?.fence === row.fence ? { ...row, endedAt: task.lapsed.at } : row)),
    )
    this.#lanes = [...groupBy(laneRows, ({ task: lane }) => lane).values()].map((runs) => new Timeline(runs))
  }

  /**
   * An earlier run, or as many as may overlap, had not ended when the next slot came due, or only just.
   *
   * @param by the row that passed the slot over
   */
  has({ slot, next }: PassedSlot, by: RunRecord): boolean {
    const { jitterMs, laneCount } = this.#task
    const from = overlapEnd(slot, next)
    const to = Math.min(next + longestJitterMs(jitterMs, next - slot), by.startedAt - 1)
    if (this.#runs.isBusyWithin(from, to)) return true
    return laneCount > 0 && this.#lanes.filter((lane) => lane.isBusyWithin(from, to)).length >= laneCount
  }
}

/** A slot, and the next one of its schedule. */
export interface PassedSlot {
  readonly slot: number
  readonly next: number
}

/** The runs of one record: they follow one another. */
class Timeline {
  readonly #runs: readonly RunRecord[]

  constructor(rows: readonly RunRecord[]) {
    // In the order of their grants, also within a millisecond.
    const inTurn = (a: RunRecord, b: RunRecord): number => (a.fence ?? 0) - (b.fence ?? 0)
    this.#runs = rows.filter(({ attempt }) => attempt > 0).toSorted(inTurn)
  }

  isBusyWithin(from: number, to: number): boolean {
    let [first, end] = [0, this.#runs.length]
    while (first < end) {
      const middle = (first + end) >>> 1
      if ((this.#runs[middle]?.startedAt ?? 0) <= to) first = middle + 1
      else end = middle
    }
    const last = this.#runs[first - 1]
    return last !== undefined && (last.endedAt ?? Infinity) >= from
  }
}

function isHandOver({ slot, reason, holder }: RunRecord): boolean {
  return handedOverTo(reason) !== null || placeOf({ slot, holder: holder ?? '' }).lane !== null
}
