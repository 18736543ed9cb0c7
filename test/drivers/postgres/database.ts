import pg from 'pg'
import type { AcquireRequest, CallOptions, Driver } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import type { PostgresDriverOptions } from 'leasehold/postgres'
import { freshPostgresUrl } from '../../support/stores.ts'

export const call: CallOptions = { attempt: 1, lockedRows: 'skip' }
export const waiting: CallOptions = { attempt: 1, lockedRows: 'wait' }

let minted = 0
/** Distinct within a test file, and as long as real ones. */
export function token(): string {
  return `token-${String(++minted).padStart(18, '0')}`
}

export function asking(key: string, request: Partial<AcquireRequest> = {}): AcquireRequest {
  return { key, token: token(), ttlMs: 60_000, holder: '{"instance":"test"}', waitingMs: 0, ...request }
}

/** A database of a test's own, and a way to look into it. */
export interface Database extends AsyncDisposable {
  readonly url: string
  /** Runs SQL outside the driver. */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  pool(options?: pg.PoolConfig): pg.Pool
  client(options?: pg.ClientConfig): Promise<pg.Client>
  /** A driver on a pool of its own. */
  driver(options?: PostgresDriverOptions, pool?: pg.PoolConfig): Driver
  /** To be closed with the database. */
  also(close: () => Promise<unknown>): void
}

export async function freshDatabase(url?: string): Promise<Database> {
  const own = url ?? (await freshPostgresUrl())
  const closing: (() => Promise<unknown>)[] = []
  const database: Database = {
    url: own,
    sql: async (text, values = []) => (await admin.query(text, values)).rows,
    pool(options = {}) {
      const pool = new pg.Pool({ connectionString: own, max: 4, ...options })
      closing.push(() => pool.end())
      return pool
    },
    async client(options = {}) {
      const client = new pg.Client({ connectionString: own, ...options })
      await client.connect()
      closing.push(() => client.end())
      return client
    },
    driver: (options, pool) => postgresDriver(database.pool(pool), options),
    also: (close) => void closing.push(close),
    async [Symbol.asyncDispose]() {
      for (const close of closing.toReversed()) await close()
    },
  }
  const admin = database.pool({ max: 4 })
  return database
}
