import type {
  ClaimAnswer,
  CompleteAnswer,
  ControlAnswer,
  PollAnswer,
  RegisterAnswer,
  RunRecord,
  RunRefreshAnswer,
  TaskDriver,
  TaskRecord,
  TaskState,
} from '../../driver/task-driver.ts'
import { arrayText, columns } from './array-text.ts'
import { claimSql } from './claim.sql.ts'
import { noFenceLeft, purgeReach } from './locks.ts'
import { lockingStatement, statement } from './store.ts'
import type { PostgresStore, Scope } from './store.ts'
import {
  completeSql,
  controlSql,
  inspectAllSql,
  inspectSql,
  logSql,
  pollSql,
  purgeRunsSql,
  refreshRunSql,
  registerSql,
} from './tasks.sql.ts'

/** Prepares the statements for tasks; the answer opens one namespace. */
export function tasksIn(store: PostgresStore): (scope: Scope) => TaskDriver {
  const { tables } = store
  const register = lockingStatement((lockedRows) => registerSql(tables, lockedRows))
  const claim = lockingStatement((lockedRows) => claimSql(tables, lockedRows))
  const refresh = lockingStatement((lockedRows) => refreshRunSql(tables, lockedRows))
  const complete = lockingStatement((lockedRows) => completeSql(tables, lockedRows))
  const control = lockingStatement((lockedRows) => controlSql(tables, lockedRows))
  const poll = statement(pollSql(tables))
  const inspect = statement(inspectSql(tables))
  const inspectAll = statement(inspectAllSql(tables))
  const log = statement(logSql(tables))
  const purge = statement(purgeRunsSql(tables))

  return ({ namespace, channel }) => {
    let purgedUpTo: PurgeCursor = ['', 0, 0]
    return {
      async register(requests, call) {
        const values = [
          namespace,
          ...columns(requests, 'task', 'fingerprint', 'definition', 'starting', 'attendMs'),
          arrayText(requests.map(({ since }) => since ?? null)),
          channel,
        ]
        return (await store.ask<RegisterRow[]>(register[call.lockedRows], values, call.attempt)).map(
          registerAnswer,
        )
      },

      async claim(requests, call) {
        const values = [
          namespace,
          ...columns(
            requests,
            'task',
            'slot',
            'after',
            'gap',
            'fingerprint',
            'definition',
            'attendMs',
            'token',
            'ttlMs',
            'holder',
            'overlap',
            'onCrash',
            'maxAttempts',
            'decide',
            'reason',
          ),
          arrayText(requests.map(({ orders }) => orders?.before ?? null)),
          arrayText(requests.map(({ orders }) => orders?.after ?? null)),
        ]
        return (await store.ask<ClaimRow[]>(claim[call.lockedRows], values, call.attempt)).map(claimAnswer)
      },

      async refresh(requests, call) {
        const values = [namespace, ...columns(requests, 'task', 'token', 'ttlMs')]
        return (await store.ask<RefreshRow[]>(refresh[call.lockedRows], values, call.attempt)).map(
          refreshAnswer,
        )
      },

      async complete(requests, call) {
        const values = [
          namespace,
          ...columns(requests, 'task', 'slot', 'attempt', 'fence', 'outcome', 'reason', 'error'),
        ]
        return (await store.ask<CompleteRow[]>(complete[call.lockedRows], values, call.attempt)).map(
          completeAnswer,
        )
      },

      async control({ task, kind, requestId, by, fence, orders }, call) {
        const values = [
          namespace,
          task,
          kind,
          requestId,
          by,
          fence === null ? '' : String(fence),
          channel,
          orders?.before ?? '',
          orders?.after ?? '',
        ]
        return controlAnswer(await store.ask<ControlRow>(control[call.lockedRows], values, call.attempt))
      },

      async poll(call): Promise<PollAnswer> {
        const [version, now] = await store.ask<[number, number]>(poll, [namespace], call.attempt)
        return { version, now }
      },

      async inspect(tasks, call) {
        const rows =
          tasks === null
            ? await store.ask<RecordRow[]>(inspectAll, [namespace], call.attempt)
            : await store.ask<(RecordRow | null)[]>(inspect, [namespace, arrayText(tasks)], call.attempt)
        return rows.map((row) => (row === null ? null : recordOf(row)))
      },

      log({ task, from, to, limit }, call) {
        const values = [namespace, task, String(from ?? ''), String(to ?? ''), String(limit)]
        return store.ask<RunRecord[]>(log, values, call.attempt)
      },

      async purge({ retentionMs, limit }, call) {
        const reach = limit * purgeReach
        const values = [namespace, ...[retentionMs, limit, reach].map(String), ...purgedUpTo.map(String)]
        const [deleted, ...next] = await store.ask<[number, ...PurgeCursor]>(purge, values, call.attempt)
        purgedUpTo = next
        return deleted
      },
    }
  }
}

type PurgeCursor = [task: string, slot: number, attempt: number]

type StateRow = [
  now: number,
  mark: number,
  generation: number,
  paused: boolean,
  runSlot: number | null,
  runAttempt: number,
  fence: number,
  remainingMs: number,
  holder: string,
  orders: string,
]

function stateOf([
  now,
  mark,
  generation,
  paused,
  slot,
  attempt,
  fence,
  remainingMs,
  holder,
  orders,
]: StateRow): TaskState {
  const running = slot === null ? null : { slot, attempt, fence, remainingMs, holder }
  return { now, mark, generation, paused, orders, running }
}

type RegisterRow = ['busy'] | [outcome: 'created' | 'current' | 'raised' | 'superseded', ...StateRow]

function registerAnswer(row: RegisterRow): RegisterAnswer {
  if (row[0] === 'busy') return { outcome: 'busy' }
  const [outcome, ...state] = row
  return { outcome, ...stateOf(state) }
}

type ClaimRow =
  | ['busy']
  | ['overflow', fence: number]
  | [outcome: Exclude<ClaimAnswer['outcome'], 'busy' | 'failed'>, reason: string, ...StateRow]

function claimAnswer(row: ClaimRow): ClaimAnswer {
  if (row[0] === 'busy') return { outcome: 'busy' }
  if (row[0] === 'overflow') return { outcome: 'failed', error: noFenceLeft(row[1]) }
  const [outcome, reason, ...rest] = row
  const state = stateOf(rest)
  if (outcome === 'skipped') return { outcome, reason, ...state }
  if (outcome !== 'granted' && outcome !== 'takeover') return { outcome, ...state }
  const { slot, attempt, fence, remainingMs } = state.running!
  return { outcome, ...state, slot, attempt, fence, remainingMs }
}

type RefreshRow = ['held', remainingMs: number, stop: string | null] | ['lost' | 'busy']

function refreshAnswer(row: RefreshRow): RunRefreshAnswer {
  if (row[0] === 'held') return { outcome: 'held', remainingMs: row[1], stop: row[2] }
  return { outcome: row[0] }
}

type CompleteRow = [outcome: 'completed' | 'late' | 'busy', now: number]

function completeAnswer([outcome, now]: CompleteRow): CompleteAnswer {
  return outcome === 'busy' ? { outcome } : { outcome, now }
}

type ControlRow = ['applied' | 'repeated', version: number] | ['idle' | 'changed' | 'unregistered' | 'busy']

function controlAnswer(row: ControlRow): ControlAnswer {
  if (row[0] === 'applied' || row[0] === 'repeated') return { outcome: row[0], version: row[1] }
  return { outcome: row[0] }
}

type RecordRow = [
  task: string,
  fingerprint: string,
  definition: string,
  registeredAt: number,
  attendedUntil: number,
  pausedBy: string | null,
  stop: string | null,
  ...StateRow,
]

function recordOf(row: RecordRow): TaskRecord {
  const [task, fingerprint, definition, registeredAt, attendedUntil, pausedBy, stop, ...state] = row
  return { ...stateOf(state), task, fingerprint, definition, registeredAt, attendedUntil, pausedBy, stop }
}
