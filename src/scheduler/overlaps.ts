import type { RunRecord } from '../driver/task-driver.ts'
import { handedOverTo, placeOf } from './lanes.ts'
import type { Schedule } from './schedule.ts'

/** A fleet that is there claims a slot within this: one that an earlier run had left so much time met no overlap. */
const claimMs = 60_000

/** What is to be known of a task to read its log. */
export interface TaskRead {
  readonly schedule: Schedule
  /** So much later than its own instant a slot may be claimed, but never after the next one. */
  readonly jitterMs: number
  /** How many runs may overlap; 0 if none may. */
  readonly laneCount: number
  /** The run that has lapsed, at this moment, without anybody having dealt with it yet. */
  readonly lapsed: { readonly fence: number; readonly at: number } | null
}

/**
 * Which of the slots that nobody decided met an earlier run: told from the log, since whoever passes them over may have
 * come when that run had long ended.
 */
export class Overlaps {
  readonly #task: TaskRead
  readonly #runs: readonly RunRecord[]
  readonly #laneRuns: readonly RunRecord[]

  constructor(task: TaskRead, rows: readonly RunRecord[], laneRows: readonly RunRecord[]) {
    this.#task = task
    // A hand-over takes moments.
    this.#runs = rows
      .filter((row) => row.attempt > 0 && !isHandOver(row))
      .map((row) => (task.lapsed?.fence === row.fence ? { ...row, endedAt: task.lapsed.at } : row))
    this.#laneRuns = laneRows.filter(({ attempt }) => attempt > 0)
  }

  /**
   * An earlier run, or as many as may overlap, had not ended when the next slot came due, or only just.
   *
   * @param by the row that passed the slot over
   */
  has(slot: number, by: RunRecord): boolean {
    const { schedule, jitterMs, laneCount } = this.#task
    const next = schedule.next(slot)
    const periodMs = next - slot
    const from = next - Math.min(claimMs, periodMs / 2)
    const to = Math.min(next + Math.min(jitterMs, periodMs), by.startedAt - 1)
    const isUnderWay = ({ startedAt, endedAt }: RunRecord): boolean =>
      startedAt <= to && (endedAt ?? Infinity) >= from
    return (
      this.#runs.some(isUnderWay) || (laneCount > 0 && this.#laneRuns.filter(isUnderWay).length >= laneCount)
    )
  }
}

function isHandOver({ slot, reason, holder }: RunRecord): boolean {
  return handedOverTo(reason) !== null || placeOf({ slot, holder: holder ?? '' }).lane !== null
}
