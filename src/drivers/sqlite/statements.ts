import type { PreparedDatabase } from './clients.ts'
import { Columns } from './columns.ts'
import { lockStatements } from './locks.sql.ts'
import type { LockStatements } from './locks.sql.ts'
import { namespaceStatements } from './namespace.sql.ts'
import type { NamespaceStatements } from './namespace.sql.ts'
import type { SqliteTables } from './schema.sql.ts'
import { taskStatements } from './tasks.sql.ts'
import type { TaskStatements } from './tasks.sql.ts'

/** Every statement that runs after the tables are there. */
export interface SqliteStatements {
  readonly namespace: NamespaceStatements
  readonly lock: LockStatements
  readonly task: TaskStatements
}

export function sqliteStatements(tables: SqliteTables): SqliteStatements {
  return {
    namespace: namespaceStatements(tables),
    lock: lockStatements(tables),
    task: taskStatements(tables),
  }
}

/** The greatest fence issued in a namespace, and its control version. */
export function readNamespace(
  database: PreparedDatabase,
  statements: NamespaceStatements,
  namespace: string,
): { readonly floor: number; readonly version: number } {
  const row = database.get(statements.read, namespace)
  if (row === null) return { floor: 0, version: 0 }
  const columns = new Columns(row, 'the namespace')
  return { floor: columns.whole('fence'), version: columns.whole('version') }
}
