import { type Holder, parseHolder } from '../core/holder.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import type { RunHistoryEntry } from './history.ts'
import { slotsBetween, type Timing } from './schedule.ts'
import { scheduleFromText } from './task-options.ts'

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
  /** The run under way; null if nothing runs. */
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

export function toSummary(record: TaskRecord): TaskSummary {
  const { task, mark, generation, registeredAt, attendedUntil, pausedBy, running, stop, now, definition } =
    record
  const schedule = scheduleFromText(definition)
  return {
    task: nameFrom(definition) ?? task,
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
export function toStatus(record: TaskRecord, entries: readonly RunHistoryEntry[]): TaskStatus {
  const counts = { succeeded: 0, failed: 0, abandoned: 0, lost: 0, skipped: 0, missed: 0 }
  const counted = entries.filter(({ state }) => state in counts)
  for (const { state } of counted) counts[state as keyof typeof counts]++
  const failures = ['failed', 'abandoned', 'lost']
  return {
    ...toSummary(record),
    lastSuccess: entries.find(({ state }) => state === 'succeeded') ?? null,
    lastFailure: entries.find(({ state }) => failures.includes(state)) ?? null,
    counts,
    countedSince: counted.at(-1)?.slot ?? null,
  }
}

/** The name as the user wrote it, where the store has another form of it. */
function nameFrom(definition: string): string | null {
  try {
    const { name } = JSON.parse(definition) as { name?: unknown }
    return typeof name === 'string' ? name : null
  } catch {
    return null
  }
}
