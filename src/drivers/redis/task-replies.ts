import type { RunRecord, RunState, TaskRecord, TaskState } from '../../driver/task-driver.ts'

/** @param words what `answer` in task-record.lua.ts makes */
export function readTaskState(words: readonly string[]): TaskState {
  const [
    ,
    now,
    mark,
    generation,
    paused,
    running,
    slot,
    attempt,
    fence,
    remaining,
    holder = '',
    ,
    orders = '',
  ] = words
  return {
    now: Number(now),
    mark: Number(mark),
    generation: Number(generation),
    paused: paused === '1',
    orders,
    running:
      running === '1'
        ? {
            slot: Number(slot),
            attempt: Number(attempt),
            fence: Number(fence),
            remainingMs: Number(remaining) / 1000,
            holder,
          }
        : null,
  }
}

/** @param words what inspect.lua.ts answers for a known task, without the name */
export function readTask(task: string, words: readonly string[]): TaskRecord {
  const state = readTaskState(words)
  const [fingerprint = '', definition = '', registered, attended, by = '', stopping, stop = ''] =
    words.slice(13)
  return {
    ...state,
    task,
    fingerprint,
    definition,
    registeredAt: Number(registered),
    attendedUntil: Number(attended),
    pausedBy: state.paused ? by : null,
    stop: stopping === '1' ? stop : null,
  }
}

/** @param member of a run log, as task-record.lua.ts describes it; null if it is none */
export function readRun(task: string, member: string): RunRecord | null {
  const row = rowOf(member)
  if (row === null) return null
  const [slot, attempt, state, reason, after, gap, fence, holder, startedAt, endedAt, error, late] = row
  return {
    task,
    slot: Number(slot),
    attempt: Number(attempt),
    state: state as RunState,
    reason: textOrNull(reason),
    after: Number(after),
    gap: textOrNull(gap) ?? '',
    fence: numberOrNull(fence),
    holder: textOrNull(holder),
    startedAt: Number(startedAt),
    endedAt: numberOrNull(endedAt),
    error: textOrNull(error),
    late: textOrNull(late),
  }
}

function rowOf(member: string): readonly (string | false)[] | null {
  try {
    const row: unknown = JSON.parse(member.slice(10))
    const isRow =
      Array.isArray(row) &&
      row.length >= 11 &&
      row.every((cell) => cell === false || typeof cell === 'string')
    return isRow ? row : null
  } catch {
    return null
  }
}

function textOrNull(value: string | false | undefined): string | null {
  return value === undefined || value === false ? null : value
}

function numberOrNull(value: string | false | undefined): number | null {
  return value === undefined || value === false ? null : Number(value)
}
