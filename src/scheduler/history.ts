import { setImmediate } from 'node:timers'
import { type Holder, parseHolder } from '../core/holder.ts'
import type { RunRecord, RunState } from '../driver/task-driver.ts'
import { groupBy } from './group-by.ts'
import { Overlaps, type TaskRead } from './overlaps.ts'
import { gapReason, manualReason, overtakenReason } from './policies.ts'
import { slotsBefore } from './schedule.ts'

/** What became of one slot, or of one attempt at it. */
export interface RunHistoryEntry {
  readonly task: string
  /** The nominal instant; of `registered` and `edited` entries the moment when that happened. */
  readonly slot: Date
  /** 1 for the first run of a slot, more for retries after a crash, 0 for a slot that was not even granted to a node. */
  readonly attempt: number
  /**
   * - `running`; `succeeded`; `failed`: the handler threw
   * - `abandoned`: it was asked to stop, or reached its maximum lifetime, and was not done, see `reason`
   * - `lost`: its node died, or could not renew its lease
   * - `skipped`, `missed`: it did not run, see `reason`
   * - `registered`: the store got to know the task then; slots before it never were due
   */
  readonly state: RunState
  /**
   * Why it did not run, or was not done; null for a run that ended by itself, but `manual` for one that an operator asked
   * for. `overlap`: an earlier one still ran when the next slot came due, or until less than half a minute before; `paused`;
   * `lock`: another held its lock, or it lost it; `cancelled`: an operator or a newer slot asked it to stop; `timeout`;
   * `max-lifetime`; `late`: found after its start
   * deadline or catch-up window; `down`: no node was there to claim it, or none reached the store; `edited`: it was due
   * under a schedule that was replaced; `stopped`: granted to a node that was past its drain limit, or cut off at it; `unanswered`: granted by an
   * answer that came too late for whoever had fired it; `fence`: granted by a
   * store that had gone back in time.
   */
  readonly reason: string | null
  /** Who asked for a `manual` run and why; null for all others. */
  readonly by: string | null
  readonly fence: number | null
  /** Who ran it, or decided that it does not run; null if nobody in particular did. */
  readonly holder: Holder | null
  /** When the run began, or the decision was made, on the store's clock. */
  readonly startedAt: Date
  /** Null while it runs. */
  readonly endedAt: Date | null
  readonly durationMs: number | null
  /** What the handler threw, as text; for a `cancelled` run, who asked it to stop and why. */
  readonly error: string | null
  /** What a lost run came to all the same, if its handler ended later. */
  readonly late: string | null
}

/** So many slots are computed before other work of this process gets its turn: leases want to be renewed. */
const breath = 100

/**
 * The entries of a task from the rows of its log, the latest first. A row names the mark that it followed: the slots
 * between the two were decided by it as well, and get entries of their own as far as the schedule is known.
 *
 * @param laneRows the runs of slots that were handed over to lanes, instead of the rows that say so
 * @param read the task as it is now; its schedule tells nothing about slots before its last edit
 */
export async function toHistory(
  task: string,
  { rows, laneRows }: { readonly rows: readonly RunRecord[]; readonly laneRows: readonly RunRecord[] },
  read: TaskRead | null,
  limit: number,
): Promise<RunHistoryEntry[]> {
  const entries: RunHistoryEntry[] = []
  // The latest attempt first.
  const attempts = laneRows.toSorted((a, b) => b.attempt - a.attempt)
  const handedOver = groupBy(attempts, ({ slot }) => slot)
  const overlaps = read === null ? null : new Overlaps(read, rows, laneRows)
  let known = read?.schedule ?? null
  let computed = 0
  for (const row of rows) {
    if (entries.length >= limit) break
    const isOwn = row.attempt === 0 || row.reason === manualReason
    const runs = isOwn ? undefined : handedOver.get(row.slot)
    for (const run of runs?.splice(0) ?? [row]) entries.push(toEntry(task, run))
    if (row.reason === 'edited' || row.state === 'registered') known = null
    if (known === null || row.after >= row.slot) continue
    let next = row.slot
    while (entries.length < limit) {
      const most = Math.min(breath - computed, limit - entries.length)
      const missed = slotsBefore(known, next, row.after, most)
      for (const slot of missed) {
        entries.push(toMissed(task, row, slot, overlaps?.has({ slot, next }, row) === true))
        next = slot
      }
      computed += missed.length + 1
      if (computed >= breath) {
        computed = 0
        await new Promise((resolve) => setImmediate(resolve))
      }
      if (missed.length < most) break
    }
  }
  // A slot that was tried again has more than one.
  return entries.slice(0, limit)
}

function toEntry(task: string, row: RunRecord): RunHistoryEntry {
  const { slot, attempt, state, reason, fence, holder, startedAt, endedAt, error, late } = row
  return {
    task,
    slot: new Date(slot),
    attempt,
    state,
    reason,
    by: reason === manualReason ? row.gap : null,
    fence,
    holder: holder === null ? null : parseHolder(holder),
    startedAt: new Date(startedAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
    durationMs: endedAt === null ? null : endedAt - startedAt,
    error,
    late,
  }
}

function toMissed(task: string, row: RunRecord, slot: number, isOverlapped: boolean): RunHistoryEntry {
  const decidedAt = new Date(row.startedAt)
  return {
    task,
    slot: new Date(slot),
    attempt: 0,
    state: 'missed',
    reason: isOverlapped ? overtakenReason : row.gap === '' ? gapReason : row.gap,
    by: null,
    fence: null,
    holder: null,
    startedAt: decidedAt,
    endedAt: decidedAt,
    durationMs: 0,
    error: null,
    late: null,
  }
}
