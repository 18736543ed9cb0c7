import type { FailedAnswer } from '../../driver/driver.ts'
import type { LogQuery, RunRecord, TaskDriver } from '../../driver/task-driver.ts'
import {
  claimSlot,
  completeRun,
  controlTask,
  describeTask,
  refreshRun,
  registerTask,
} from '../../driver/task-rules.ts'
import type { LogChange, TaskRow, TaskStep } from '../../driver/task-rules.ts'
import { notify } from './notices.ts'
import { entry } from './table.ts'
import type { LoggedRun, MemoryNamespace } from './table.ts'

/** Tasks in the in-process table. JavaScript runs each call to its end, which makes it atomic. */
export function memoryTasks(table: MemoryNamespace, now: () => number): TaskDriver {
  const { tasks, runs } = table
  const moment = () => ({ now: now(), floor: table.floor })

  const apply = <Answer>(task: string, rule: (row: TaskRow | null) => TaskStep<Answer>): Answer => {
    const { answer, next, log, raisesVersion } = rule(tasks.get(task) ?? null)
    if (next !== null) {
      tasks.set(task, next)
      table.floor = Math.max(table.floor, next.run?.fence ?? 0)
    }
    for (const change of log)
      applyToLog(
        entry(runs, task, () => new Map<string, LoggedRun>()),
        change,
      )
    if (raisesVersion) {
      table.version += 1
      notify(table, { kind: 'control', version: table.version })
    }
    return answer
  }

  const lastAttempt = (task: string, slot: number): number => {
    const attempts = [...(runs.get(task)?.values() ?? [])].filter((row) => row.slot === slot)
    return Math.max(0, ...attempts.map(({ attempt }) => attempt))
  }

  return {
    async register(requests) {
      return requests.map((request) => apply(request.task, (row) => registerTask(row, request, moment())))
    },
    async claim(requests) {
      return requests.map((request) =>
        orFailed(() =>
          apply(request.task, (row) =>
            claimSlot(row, request, moment(), (slot) => lastAttempt(request.task, slot)),
          ),
        ),
      )
    },
    async refresh(requests) {
      return requests.map((request) => apply(request.task, (row) => refreshRun(row, request, now())))
    },
    async complete(requests) {
      return requests.map((request) => {
        const logged = runs.get(request.task)?.get(rowId(request)) ?? null
        return apply(request.task, (row) => completeRun(row, logged, request, now()))
      })
    },
    async control(request) {
      return apply(request.task, (row) => controlTask(row, request, table.version, now()))
    },
    async poll() {
      return { version: table.version, now: now() }
    },
    async inspect(names) {
      const at = now()
      return (names ?? [...tasks.keys()].toSorted()).map((task) => {
        const row = tasks.get(task)
        return row === undefined ? null : describeTask(row, at)
      })
    },
    async log(query) {
      return [...(runs.get(query.task)?.values() ?? [])]
        .filter((row) => isWanted(row, query))
        .toSorted((a, b) => b.slot - a.slot || b.attempt - a.attempt)
        .slice(0, query.limit)
        .map(({ lapsedAt, ...row }) => ({ ...row, endedAt: lapsedAt ?? row.endedAt }))
    },
    async purge({ retentionMs, limit }) {
      const endedBefore = now() - retentionMs
      let purged = 0
      for (const rows of runs.values()) {
        for (const [id, row] of rows) {
          if (purged >= limit) return purged
          // In the order in which they were begun: what follows has not ended sooner.
          if (row.startedAt > endedBefore) break
          if (row.endedAt === null || row.endedAt > endedBefore) continue
          rows.delete(id)
          purged += 1
        }
      }
      return purged
    },
  }
}

function applyToLog(rows: Map<string, LoggedRun>, change: LogChange): void {
  if (change.kind === 'add') {
    rows.set(rowId(change.row), { ...change.row, lapsedAt: null })
    return
  }
  const row = rows.get(rowId(change))
  if (row === undefined) return
  if (change.kind === 'late') {
    rows.set(rowId(change), { ...row, late: change.outcome })
    return
  }
  const { state, reason, error, endedAt, lapsedAt } = change
  rows.set(rowId(change), { ...row, state, reason: reason ?? row.reason, error, endedAt, lapsedAt })
}

function rowId(row: { readonly slot: number; readonly attempt: number }): string {
  return `${row.slot}/${row.attempt}`
}

function isWanted(row: RunRecord, { from, to }: LogQuery): boolean {
  return (from === null || row.slot >= from) && (to === null || row.slot < to)
}

function orFailed<Answer>(item: () => Answer): Answer | FailedAnswer {
  try {
    return item()
  } catch (error) {
    return { outcome: 'failed', error }
  }
}
