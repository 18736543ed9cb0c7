import { quoted } from '../../core/errors.ts'
import type { RunRecord, RunState } from '../../driver/task-driver.ts'
import type { RunRow, TaskRow } from '../../driver/task-rules.ts'
import type { SqliteRow, SqliteValue } from './clients.ts'
import { Columns } from './columns.ts'

/** A row of the task table. */
export function toTask(row: SqliteRow): TaskRow {
  const columns = new Columns(row, `the task ${shownName(row)}`)
  return {
    task: columns.text('task'),
    mark: columns.whole('mark'),
    fingerprint: columns.text('fingerprint'),
    former: columns.texts('former'),
    generation: columns.whole('generation'),
    definition: columns.text('definition'),
    registeredAt: columns.whole('registered_at'),
    attendedUntil: columns.whole('attended_until'),
    pausedBy: columns.textOrNull('paused_by'),
    run: columns.wholeOrNull('run_fence') === null ? null : toRunRow(columns),
    orders: columns.text('orders'),
    requests: columns.texts('requests'),
  }
}

/** The values of a task's row after the namespace, in the order of the table. */
export function taskValues(row: TaskRow): readonly SqliteValue[] {
  const { run } = row
  return [
    row.task,
    row.mark,
    row.fingerprint,
    JSON.stringify(row.former),
    row.generation,
    row.definition,
    row.registeredAt,
    row.attendedUntil,
    row.pausedBy,
    run?.slot ?? null,
    run?.attempt ?? null,
    run?.token ?? null,
    run?.fence ?? null,
    run?.holder ?? null,
    run?.expiresAt ?? null,
    run?.stop ?? null,
    row.orders,
    JSON.stringify(row.requests),
  ]
}

/** A row of the run log. */
export function toRunRecord(row: SqliteRow): RunRecord {
  const columns = new Columns(row, `a run of ${shownName(row)}`)
  return {
    task: columns.text('task'),
    slot: columns.whole('slot'),
    attempt: columns.whole('attempt'),
    state: columns.text('state') as RunState,
    reason: columns.textOrNull('reason'),
    after: columns.whole('after'),
    gap: columns.text('gap'),
    fence: columns.wholeOrNull('fence'),
    holder: columns.textOrNull('holder'),
    startedAt: columns.whole('started_at'),
    endedAt: columns.wholeOrNull('ended_at'),
    error: columns.textOrNull('error'),
    late: columns.textOrNull('late'),
  }
}

/** The values of a row of the run log after the namespace, in the order of the table. */
export function runValues(row: RunRecord): readonly SqliteValue[] {
  return [
    row.task,
    row.slot,
    row.attempt,
    row.state,
    row.reason,
    row.after,
    row.gap,
    row.fence,
    row.holder,
    row.startedAt,
    row.endedAt,
    row.error,
    row.late,
  ]
}

function shownName({ task }: SqliteRow): string {
  return quoted(String(task))
}

function toRunRow(columns: Columns): RunRow {
  return {
    slot: columns.whole('run_slot'),
    attempt: columns.whole('run_attempt'),
    token: columns.text('run_token'),
    fence: columns.whole('run_fence'),
    holder: columns.text('run_holder'),
    expiresAt: columns.whole('run_expires_at'),
    stop: columns.textOrNull('run_stop'),
  }
}
