import { DriverFault, quoted } from '../../core/errors.ts'
import type { FailedAnswer } from '../../driver/driver.ts'
import {
  acquireLease,
  describeLease,
  refreshLease,
  releaseLease,
  revokeLease,
} from '../../driver/lease-rules.ts'
import type { LeaseRow, LeaseStep, StoreMoment } from '../../driver/lease-rules.ts'
import type {
  LeaseRecord,
  LockDriver,
  RevokeAnswer,
  ScanPage,
  ScanRequest,
} from '../../driver/lock-driver.ts'
import type { PreparedDatabase, SqliteRow } from './clients.ts'
import { Columns } from './columns.ts'
import type { SqliteConnection } from './connection.ts'
import { orFailed } from './faults.ts'
import type { LockStatements } from './locks.sql.ts'
import { readNamespace } from './statements.ts'
import type { SqliteStatements } from './statements.ts'

/** How many records a page of a scan looks at, at least: many of them may be free. */
const scanStride = 500

/** @param use answers the connection, or throws when the session was closed */
export function sqliteLocks(
  use: () => SqliteConnection,
  { namespace: shared, lock: statements }: Omit<SqliteStatements, 'task'>,
  namespace: string,
): LockDriver {
  const find = (database: PreparedDatabase, key: string): LeaseRow | null => {
    const row = database.get(statements.find, namespace, key)
    return row === null ? null : toLease(row, key)
  }

  const save = (database: PreparedDatabase, key: string, row: LeaseRow): void => {
    const { token, fence, holder, acquiredAt, expiresAt, waitingUntil, spent, revoked } = row
    const values = [token, fence, holder, acquiredAt, expiresAt, waitingUntil, spent, revoked ? 1 : 0]
    database.run(statements.save, namespace, key, ...values)
  }

  /** One statement writes one item, so an item that fails leaves nothing behind. */
  const applyEach = <Request extends { readonly key: string }, Answer>(
    requests: readonly Request[],
    rule: (row: LeaseRow | null, request: Request, moment: StoreMoment) => LeaseStep<Answer>,
  ): readonly (Answer | FailedAnswer)[] =>
    use().write('lease', (database) => {
      const now = Date.now()
      const { floor } = readNamespace(database, shared, namespace)
      let issued = floor
      const answers = requests.map((request) =>
        orFailed(() => {
          const { answer, next } = rule(find(database, request.key), request, { now, floor: issued })
          if (next !== null) {
            save(database, request.key, next)
            issued = Math.max(issued, next.fence)
          }
          return answer
        }),
      )
      if (issued > floor) database.run(shared.raiseFence, namespace, issued)
      return answers
    })

  return {
    async acquire(requests) {
      return applyEach(requests, acquireLease)
    },
    async refresh(requests) {
      return applyEach(requests, (row, request, { now }) => refreshLease(row, request, now))
    },
    async release(requests) {
      return applyEach(requests, (row, request, { now }) => releaseLease(row, request, now))
    },
    async revoke(request) {
      const answers = applyEach([request], (row, _, { now }) => revokeLease(row, request, now))
      return answers[0] as RevokeAnswer
    },
    async peek(keys) {
      return use().read((database) => {
        const now = Date.now()
        return keys.map((key) => describeLease(key, find(database, key), now))
      })
    },
    async scan(request) {
      return use().read((database) => scanLeases(database, statements, namespace, request))
    },
    async purge({ retentionMs, limit }) {
      const now = Date.now()
      return use().write('lease', (database) =>
        database.run(statements.purge, namespace, now - retentionMs, now * 1000, limit),
      )
    },
  }
}

function scanLeases(
  database: PreparedDatabase,
  statements: LockStatements,
  namespace: string,
  { prefix, limit, cursor }: ScanRequest,
): ScanPage {
  const now = Date.now()
  const stride = Math.max(limit, scanStride)
  const rows = database.all(statements.page, namespace, cursor ?? prefix, cursor ?? '', stride)
  const records: LeaseRecord[] = []
  let last = cursor
  for (const row of rows) {
    const key = new Columns(row, 'a lease').text('key')
    // Keys with one beginning lie side by side in byte order, whatever the encoding of the file.
    if (!key.startsWith(prefix)) return { records, cursor: null }
    if (records.length === limit) return { records, cursor: last }
    const record = readable(() => describeLease(key, toLease(row, key), now))
    if (record !== null) records.push(record)
    last = key
  }
  return { records, cursor: rows.length === stride ? last : null }
}

/** A row that another program spoilt is left out: a call on its key says what is wrong with it. */
function readable(read: () => LeaseRecord | null): LeaseRecord | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DriverFault && error.kind === 'bad-item') return null
    throw error
  }
}

function toLease(row: SqliteRow, key: string): LeaseRow {
  const columns = new Columns(row, `the lease of ${quoted(key)}`)
  return {
    token: columns.textOrNull('token'),
    fence: columns.whole('fence'),
    holder: columns.text('holder'),
    acquiredAt: columns.whole('acquired_at'),
    expiresAt: columns.whole('expires_at'),
    waitingUntil: columns.whole('waiting_until'),
    spent: columns.textOrNull('spent'),
    revoked: columns.whole('revoked') !== 0,
  }
}
