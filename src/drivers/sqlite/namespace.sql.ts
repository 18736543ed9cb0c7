import type { SqliteTables } from './schema.sql.ts'

/** The one row that all keys and tasks of a namespace share. Read and written in the same transaction as they are. */
export interface NamespaceStatements {
  /** In: namespace. Out: fence, version; no row before the first write. */
  readonly read: string
  /** In: namespace, fence. Never lowers it. */
  readonly raiseFence: string
  /** In: namespace. */
  readonly raiseVersion: string
}

export function namespaceStatements({ namespace }: SqliteTables): NamespaceStatements {
  return {
    read: `select fence, version from ${namespace} where namespace = ?`,
    raiseFence: `
      insert into ${namespace} (namespace, fence, version) values (?, ?, 0)
      on conflict (namespace) do update set fence = max(fence, excluded.fence)`,
    raiseVersion: `
      insert into ${namespace} (namespace, fence, version) values (?, 0, 1)
      on conflict (namespace) do update set version = version + 1`,
  }
}
