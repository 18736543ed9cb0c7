import type { SqliteTables } from './schema.sql.ts'

/**
 * What the driver does to leases. The rules are plain TypeScript between a read and a write; the driver's
 * transaction around both makes them one atomic step: BEGIN IMMEDIATE admits one writer to the file at a time.
 */
export interface LockStatements {
  /** In: namespace, key. Out: all columns but these two. */
  readonly find: string
  /** In: all columns. */
  readonly save: string
  /** In: namespace, key, key, limit. Out: rows whose key is the first or beyond, but not the second, in byte order. */
  readonly page: string
  /** In: namespace, free since, greatest fence, limit. The index ends the walk at the first younger record. */
  readonly purge: string
}

export function lockStatements({ lease }: SqliteTables): LockStatements {
  const columns = 'token, fence, holder, acquired_at, expires_at, waiting_until, spent, revoked'
  return {
    find: `select ${columns} from ${lease} where namespace = ? and key = ?`,
    save: `
      insert into ${lease} (namespace, key, ${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (namespace, key) do update set
        token = excluded.token, fence = excluded.fence, holder = excluded.holder,
        acquired_at = excluded.acquired_at, expires_at = excluded.expires_at,
        waiting_until = excluded.waiting_until, spent = excluded.spent, revoked = excluded.revoked`,
    page: `
      select key, ${columns} from ${lease}
       where namespace = ? and key >= ? and key <> ? order by key limit ?`,
    purge: `
      delete from ${lease} where (namespace, key) in (
        select namespace, key from ${lease}
         where namespace = ? and expires_at <= ? and fence <= ? order by expires_at limit ?)`,
  }
}
