import { DriverFault } from '../../core/errors.ts'
import type {
  AcquireAnswer,
  LeaseRecord,
  LockDriver,
  RefreshAnswer,
  ReleaseAnswer,
  RevokeAnswer,
} from '../../driver/lock-driver.ts'
import { arrayText, columns } from './array-text.ts'
import { acquireSql, peekSql, purgeSql, refreshSql, releaseSql, revokeSql, scanSql } from './locks.sql.ts'
import { lockingStatement, statement } from './store.ts'
import type { PostgresStore, Scope } from './store.ts'

/** How many rows a purge looks at for each that it may delete, so that it stays short on a big table. */
export const purgeReach = 4

/** Prepares the statements for leases; the answer opens one namespace. */
export function locksIn(store: PostgresStore): (scope: Scope) => LockDriver {
  const { tables } = store
  const acquire = lockingStatement((lockedRows) => acquireSql(tables, lockedRows))
  const refresh = lockingStatement((lockedRows) => refreshSql(tables, lockedRows))
  const release = lockingStatement((lockedRows) => releaseSql(tables, lockedRows))
  const revoke = lockingStatement((lockedRows) => revokeSql(tables, lockedRows))
  const peek = statement(peekSql(tables))
  const scan = statement(scanSql(tables))
  const purge = statement(purgeSql(tables))

  return ({ namespace, channel }) => {
    let purgedUpTo = ''
    return {
      async acquire(requests, call) {
        const values = [namespace, ...columns(requests, 'key', 'token', 'ttlMs', 'holder', 'waitingMs')]
        const answers = await store.ask<AcquireRow[]>(acquire[call.lockedRows], values, call.attempt)
        return answers.map(acquireAnswer)
      },

      async refresh(requests, call) {
        const values = [namespace, ...columns(requests, 'key', 'token', 'ttlMs')]
        const answers = await store.ask<RefreshRow[]>(refresh[call.lockedRows], values, call.attempt)
        return answers.map(refreshAnswer)
      },

      async release(requests, call) {
        const values = [namespace, ...columns(requests, 'key', 'token'), channel]
        const sql = release[call.lockedRows]
        const outcomes = await store.ask<ReleaseOutcome[]>(sql, values, call.attempt)
        return outcomes.map((outcome) => ({ outcome }))
      },

      async revoke({ key, fence, immediate }, call) {
        const values = [namespace, key, String(fence), String(immediate), channel]
        return revokeAnswer(await store.ask<RevokeRow>(revoke[call.lockedRows], values, call.attempt))
      },

      peek(keys, call) {
        return store.ask<(LeaseRecord | null)[]>(peek, [namespace, arrayText(keys)], call.attempt)
      },

      async scan({ prefix, limit, cursor }, call) {
        // The row that the last page ended with is looked at once more.
        const reach = cursor === null ? limit : limit + 1
        const values = [namespace, prefix, String(reach), cursor ?? '', cursor ?? prefix]
        const [records, next] = await store.ask<[LeaseRecord[], string | null]>(scan, values, call.attempt)
        return { records, cursor: next }
      },

      async purge({ retentionMs, limit }, call) {
        const values = [namespace, String(retentionMs), String(limit), String(limit * purgeReach), purgedUpTo]
        const [deleted, next] = await store.ask<[number, string]>(purge, values, call.attempt)
        purgedUpTo = next
        return deleted
      },
    }
  }
}

type AcquireRow =
  | ['granted', fence: number, remainingMs: number]
  | ['held', fence: number, remainingMs: number, holder: string]
  | ['overflow', fence: number]
  | ['spent' | 'busy']

function acquireAnswer(row: AcquireRow): AcquireAnswer {
  switch (row[0]) {
    case 'granted':
      return { outcome: 'granted', fence: row[1], remainingMs: row[2] }
    case 'held':
      return { outcome: 'held', fence: row[1], remainingMs: row[2], holder: row[3] }
    case 'overflow':
      return { outcome: 'failed', error: noFenceLeft(row[1]) }
    default:
      return { outcome: row[0] }
  }
}

type RefreshRow = ['held', remainingMs: number] | ['gone' | 'revoked' | 'busy']

function refreshAnswer(row: RefreshRow): RefreshAnswer {
  switch (row[0]) {
    case 'held':
      return { outcome: 'held', remainingMs: row[1] }
    case 'busy':
      return { outcome: 'busy' }
    default:
      return { outcome: 'lost', reason: row[0] }
  }
}

type ReleaseOutcome = Exclude<ReleaseAnswer['outcome'], 'failed'>

type RevokeRow =
  | ['revoked', remainingMs: number]
  | ['changed', fence: number]
  | ['released' | 'free' | 'busy']

function revokeAnswer(row: RevokeRow): RevokeAnswer {
  switch (row[0]) {
    case 'revoked':
      return { outcome: 'revoked', remainingMs: row[1] }
    case 'changed':
      return { outcome: 'changed', fence: row[1] }
    default:
      return { outcome: row[0] }
  }
}

/** What a task's fence says, too. */
export function noFenceLeft(fence: number): DriverFault {
  return new DriverFault(
    'unusable',
    `The record's fence is ${fence}, and a greater one would be no safe integer. Correct the server's clock and delete the record.`,
  )
}
