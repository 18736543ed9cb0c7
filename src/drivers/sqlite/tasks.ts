import type { FailedAnswer } from '../../driver/driver.ts'
import type { ControlAnswer, RunRecord, TaskDriver } from '../../driver/task-driver.ts'
import {
  claimSlot,
  completeRun,
  controlTask,
  describeTask,
  refreshRun,
  registerTask,
} from '../../driver/task-rules.ts'
import type { LogChange, TaskRow, TaskStep } from '../../driver/task-rules.ts'
import type { PreparedDatabase } from './clients.ts'
import type { SqliteConnection } from './connection.ts'
import { orFailed } from './faults.ts'
import type { Durability } from './pragmas.ts'
import { readNamespace } from './statements.ts'
import type { SqliteStatements } from './statements.ts'
import { runValues, taskValues, toRunRecord, toTask } from './task-rows.ts'

/** What a rule may look at besides the record. */
interface TaskMoment {
  readonly now: number
  readonly floor: number
  /** The control version. */
  readonly version: number
  readonly findRun: (slot: number, attempt: number) => RunRecord | null
  readonly lastAttempt: (slot: number) => number
}

/** @param use answers the connection, or throws when the session was closed */
export function sqliteTasks(
  use: () => SqliteConnection,
  { namespace: shared, task: statements }: Omit<SqliteStatements, 'lock'>,
  namespace: string,
): TaskDriver {
  const find = (database: PreparedDatabase, task: string): TaskRow | null => {
    const row = database.get(statements.find, namespace, task)
    return row === null ? null : toTask(row)
  }

  const log = (database: PreparedDatabase, task: string, change: LogChange): void => {
    if (change.kind === 'add') {
      database.run(statements.addRun, namespace, ...runValues(change.row))
      return
    }
    const { slot, attempt } = change
    if (change.kind === 'late') {
      database.run(statements.lateRun, change.outcome, namespace, task, slot, attempt)
      return
    }
    const { state, reason, error, endedAt, lapsedAt } = change
    database.run(statements.endRun, state, reason, error, endedAt, lapsedAt, namespace, task, slot, attempt)
  }

  /** An item writes several rows, so each has a savepoint: one that fails leaves nothing behind. */
  const applyEach = <Request extends { readonly task: string }, Answer>(
    durability: Durability,
    requests: readonly Request[],
    rule: (row: TaskRow | null, request: Request, moment: TaskMoment) => TaskStep<Answer>,
  ): readonly (Answer | FailedAnswer)[] =>
    use().write(durability, (database) => {
      const now = Date.now()
      const { floor, version: before } = readNamespace(database, shared, namespace)
      let issued = floor
      let version = before
      const answers = requests.map((request) =>
        orFailed(() =>
          inSavepoint(database, () => {
            const { task } = request
            const findRun = (slot: number, attempt: number) => {
              const row = database.get(statements.findRun, namespace, task, slot, attempt)
              return row === null ? null : toRunRecord(row)
            }
            const lastAttempt = (slot: number) =>
              Number(database.get(statements.lastAttempt, namespace, task, slot)?.['attempt'] ?? 0)
            const moment = { now, floor: issued, version, findRun, lastAttempt }
            const step = rule(find(database, task), request, moment)
            if (step.next !== null) database.run(statements.save, namespace, ...taskValues(step.next))
            for (const change of step.log) log(database, task, change)
            if (step.raisesVersion) database.run(shared.raiseVersion, namespace)
            // Nothing below can fail: what is counted was written.
            if (step.raisesVersion) version += 1
            issued = Math.max(issued, step.next?.run?.fence ?? 0)
            return step.answer
          }),
        ),
      )
      if (issued > floor) database.run(shared.raiseFence, namespace, issued)
      return answers
    })

  return {
    async register(requests) {
      return applyEach('durable', requests, registerTask)
    },
    async claim(requests) {
      return applyEach('durable', requests, (row, request, moment) =>
        claimSlot(row, request, moment, moment.lastAttempt),
      )
    },
    async refresh(requests) {
      return applyEach('lease', requests, (row, request, { now }) => refreshRun(row, request, now))
    },
    async complete(requests) {
      return applyEach('durable', requests, (row, request, { now, findRun }) =>
        completeRun(row, findRun(request.slot, request.attempt), request, now),
      )
    },
    async control(request) {
      const answers = applyEach('durable', [request], (row, _, { now, version }) =>
        controlTask(row, request, version, now),
      )
      return answers[0] as ControlAnswer
    },
    async poll() {
      return use().read((database) => {
        const { version } = readNamespace(database, shared, namespace)
        return { version, now: Date.now() }
      })
    },
    async inspect(tasks) {
      return use().read((database) => {
        const now = Date.now()
        const rows =
          tasks === null
            ? database.all(statements.all, namespace).map(toTask)
            : tasks.map((task) => find(database, task))
        return rows.map((row) => (row === null ? null : describeTask(row, now)))
      })
    },
    async log({ task, from, to, limit }) {
      const first = from ?? Number.MIN_SAFE_INTEGER
      const end = to ?? Number.MAX_SAFE_INTEGER
      return use().read((database) =>
        database.all(statements.log, namespace, task, first, end, limit).map(toRunRecord),
      )
    },
    async purge({ retentionMs, limit }) {
      return use().write('lease', (database) =>
        database.run(statements.purge, namespace, Date.now() - retentionMs, limit),
      )
    },
  }
}

function inSavepoint<T>(database: PreparedDatabase, body: () => T): T {
  database.run('savepoint item')
  try {
    const result = body()
    database.run('release item')
    return result
  } catch (error) {
    rollBackToSavepoint(database)
    throw error
  }
}

function rollBackToSavepoint(database: PreparedDatabase): void {
  try {
    database.run('rollback to item')
    database.run('release item')
  } catch {
    // SQLite ended the whole transaction; the error that did it is thrown on.
  }
}
