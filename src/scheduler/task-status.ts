import { type Holder, parseHolder } from '../core/holder.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import { readDefinition, type StoredDefinition } from './definition-text.ts'
import { groupBy } from './group-by.ts'
import type { RunHistoryEntry } from './history.ts'
import { slotsBetween, type Timing } from './schedule.ts'

/** A task as its fleet has it. */
export interface TaskSummary {
  readonly task: string
  /** `cron` with `timeZone`, or `everyMs`; neither for a task whose slots only the one who fires it knows. */
  readonly timing: Timing
  /** Who paused it and why; null while it is not paused. */
  readonly pausedBy: string | null
  /** The last slot that was decided. */
  readonly decided: Date
  /** The next slots, at most three. */
  readonly next: readonly Date[]
  /** The run under way, of several (`overlap: 'allow'`) the one that has run longest; null if nothing runs. */
  readonly running: RunningTask | null
  /** How often its schedule was edited, counted from 1. */
  readonly generation: number
  readonly registeredAt: Date
  /** Whether a process of the fleet attends it: none that could fire it has looked in for some minutes if not. */
  readonly isAttended: boolean
}

export interface RunningTask {
  readonly slot: Date
  readonly attempt: number
  readonly fence: number
  readonly holder: Holder
  /** Until its lease lapses unless it is renewed; 0 if it has lapsed and nobody has taken over yet. */
  readonly remainingMs: number
  /** Who asked it to stop and why, or null. */
  readonly stop: string | null
}

/** What became of a task's last slots. */
export interface TaskStatus extends TaskSummary {
  readonly lastSuccess: RunHistoryEntry | null
  /** The last run that failed, was abandoned or lost. */
  readonly lastFailure: RunHistoryEntry | null
  /** How many of the last thousand entries of the history came to what. */
  readonly counts: Readonly<
    Record<'succeeded' | 'failed' | 'abandoned' | 'lost' | 'skipped' | 'missed', number>
  >
  /** The slot of the oldest entry that was counted; null if there is none. */
  readonly countedSince: Date | null
}

/** All records of a namespace; those of lanes count for the task whose lanes they are. */
export function toSummaries(records: readonly TaskRecord[]): TaskSummary[] {
  const read = records.map((record) => ({ record, stored: readDefinition(record.definition) }))
  const lanesOf = groupBy(read, ({ stored }) => stored.laneOf)
  const tasks = lanesOf.get(null) ?? []
  return tasks.map(({ record, stored }) => {
    const lanes = lanesOf.get(record.task) ?? []
    return toSummary(
      record,
      stored,
      lanes.map((lane) => lane.record),
    )
  })
}

function toSummary(main: TaskRecord, stored: StoredDefinition, lanes: readonly TaskRecord[]): TaskSummary {
  const { task, mark, generation, registeredAt, attendedUntil, pausedBy, now } = main
  const { running, stop } = longestRunning(main, lanes)
  const schedule = stored.schedule()
  return {
    task: stored.name ?? task,
    timing: schedule?.timing ?? {},
    pausedBy,
    decided: new Date(mark),
    next: schedule === null ? [] : slotsBetween(schedule, mark, Infinity, 3).map((slot) => new Date(slot)),
    running:
      running === null
        ? null
        : {
            slot: new Date(running.slot),
            attempt: running.attempt,
            fence: running.fence,
            holder: parseHolder(running.holder),
            remainingMs: Math.max(0, running.remainingMs),
            stop,
          },
    generation,
    registeredAt: new Date(registeredAt),
    isAttended: attendedUntil > now,
  }
}

/** @param entries the latest first */
export function toStatus(
  record: TaskRecord,
  lanes: readonly TaskRecord[],
  entries: readonly RunHistoryEntry[],
): TaskStatus {
  const counts = { succeeded: 0, failed: 0, abandoned: 0, lost: 0, skipped: 0, missed: 0 }
  const counted = entries.filter(({ state }) => state in counts)
  for (const { state } of counted) counts[state as keyof typeof counts]++
  const failures = ['failed', 'abandoned', 'lost']
  return {
    ...toSummary(record, readDefinition(record.definition), lanes),
    lastSuccess: entries.find(({ state }) => state === 'succeeded') ?? null,
    lastFailure: entries.find(({ state }) => failures.includes(state)) ?? null,
    counts,
    countedSince: counted.at(-1)?.slot ?? null,
  }
}

/** Whose run counts as that of the task: by its fence, which tells when it was granted. */
function longestRunning(main: TaskRecord, lanes: readonly TaskRecord[]): TaskRecord {
  const running = lanes.filter((lane) => lane.running !== null)
  const [first] = running.toSorted((a, b) => (a.running?.fence ?? 0) - (b.running?.fence ?? 0))
  return first ?? main
}
