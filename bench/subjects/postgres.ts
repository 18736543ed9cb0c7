// What can lock a key in PostgreSQL. All share one pool of ten connections, except Knex, which makes its own of ten.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { LockService } from 'leasehold'
import { postgresDriver } from 'leasehold/postgres'
import type { PostgresDriverOptions } from 'leasehold/postgres'
import type { Pool } from 'pg'
import { confirmed, type Hold, type Mutex, type MutexSubject } from '../mutex.ts'
import { loadPeer } from '../peers.ts'
import { leaseholdMutex } from './leasehold.ts'
import { verrouMutex } from './verrou.ts'

export interface PostgresConnections {
  readonly url: string
  readonly pool: Pool
  /** What the connections call themselves: a subject that is counted has a name of its own. */
  readonly application: string
}

export type PostgresSubject = MutexSubject<PostgresConnections>

const poolSize = 10
const ttlMs = 30_000
/** How often the row-based mutexes look again; they have no push. */
const pollMs = 50

export async function openPostgresConnections(
  url: string,
  application: string,
): Promise<PostgresConnections & { close(): Promise<void> }> {
  const pg = (await loadPeer<{ default: typeof import('pg') }>('pg')).default
  const pool = new pg.Pool({ connectionString: url, max: poolSize, application_name: application })
  pool.on('error', () => {})
  return { url, pool, application, close: () => pool.end() }
}

export const postgresSubjects: readonly PostgresSubject[] = [
  { name: 'leasehold', role: 'ours', open: async ({ pool }) => leasehold(pool) },
  {
    name: 'leasehold, named statements',
    role: 'ours',
    open: async ({ pool }) => leasehold(pool, { namedStatements: true }),
  },
  {
    name: 'leasehold, 100,000 foreign records',
    role: 'ours',
    open: ({ pool }) => leaseholdAmongOthers(pool),
  },
  { name: 'delete, insert, delete', role: 'peer', open: ({ pool }) => deleteInsertDelete(pool) },
  { name: 'upsert, update', role: 'peer', open: ({ pool }) => upsertUpdate(pool) },
  { name: '@verrou/core with Knex', role: 'peer', open: (connections) => verrouWithKnex(connections) },
  { name: 'advisory locks', role: 'raw', open: async ({ pool }) => advisoryLocks(pool) },
]

function leasehold(pool: Pool, options: PostgresDriverOptions = {}): Mutex {
  return leaseholdMutex(new LockService({ driver: postgresDriver(pool, options), namespace: 'bench' }))
}

/** In a table where another namespace holds 100,000 leases. */
async function leaseholdAmongOthers(pool: Pool): Promise<Mutex> {
  const options = { tablePrefix: 'crowded_' }
  const mutex = leasehold(pool, options)
  // Makes the tables.
  await (await mutex.tryAcquire('first'))?.release()
  await pool.query(`
    insert into crowded_leases (namespace, key, token, fence, holder, acquired_at, expires_at)
    select 'others', 'key:' || n, 'token:' || n, n, '{}', now(), now() + interval '1 hour'
    from generate_series(1, 100000) n on conflict do nothing`)
  await pool.query('analyze crowded_leases')
  return mutex
}

/** The mutex as it is commonly written: what is stale is deleted, and a row that can be inserted is the lock. */
async function deleteInsertDelete(pool: Pool): Promise<Mutex> {
  await pool.query(`
    create table if not exists mutexes (name text primary key, token text not null, expires_at timestamptz not null)`)
  const tryAcquire = async (key: string): Promise<Hold | null> => {
    const token = randomUUID()
    await pool.query('delete from mutexes where name = $1 and expires_at <= clock_timestamp()', [key])
    const { rowCount } = await pool.query(
      `insert into mutexes values ($1, $2, clock_timestamp() + $3 * interval '1 ms') on conflict do nothing`,
      [key, token, ttlMs],
    )
    if (rowCount !== 1) return null
    return changed(pool, 'delete from mutexes where name = $1 and token = $2', [key, token])
  }
  return { tryAcquire, acquire: polling(tryAcquire), close: async () => {} }
}

/** Two statements: a row is kept, and taken over when it has expired. */
async function upsertUpdate(pool: Pool): Promise<Mutex> {
  await pool.query(`
    create table if not exists upserted (name text primary key, token text not null, expires_at timestamptz not null)
    with (fillfactor = 70)`)
  const tryAcquire = async (key: string): Promise<Hold | null> => {
    const token = randomUUID()
    const { rowCount } = await pool.query(
      `insert into upserted as mine values ($1, $2, clock_timestamp() + $3 * interval '1 ms')
       on conflict (name) do update set token = excluded.token, expires_at = excluded.expires_at
       where mine.expires_at <= clock_timestamp()`,
      [key, token, ttlMs],
    )
    if (rowCount !== 1) return null
    const expire = `update upserted set expires_at = '-infinity' where name = $1 and token = $2`
    return changed(pool, expire, [key, token])
  }
  return { tryAcquire, acquire: polling(tryAcquire), close: async () => {} }
}

interface KnexInstance {
  destroy(): Promise<void>
}

async function verrouWithKnex({ url, application }: PostgresConnections): Promise<Mutex> {
  const { default: knex } = await loadPeer<{ default(config: object): KnexInstance }>('knex')
  const { knexStore } = await loadPeer<{ knexStore(options: object): { factory(): unknown } }>(
    '@verrou/core/drivers/knex',
  )
  const connection = knex({
    client: 'pg',
    connection: { connectionString: url, application_name: application },
    pool: { min: poolSize, max: poolSize },
  })
  const mutex = await verrouMutex(knexStore({ connection }).factory())
  return { ...mutex, close: () => connection.destroy() }
}

/** The locks that the server itself has: no row, no commit, gone with the connection, which each hold keeps for itself. */
function advisoryLocks(pool: Pool): Mutex {
  const number = 'hashtextextended($1, 0)'
  const take = async (key: string, verb: string): Promise<Hold | null> => {
    const client = await pool.connect()
    const { rows } = await client.query<{ locked: boolean | string }>(`select ${verb}(${number}) as locked`, [
      key,
    ])
    if (rows[0]?.locked === false) {
      client.release()
      return null
    }
    return confirmed(async () => {
      const unlock = `select pg_advisory_unlock(${number}) as unlocked`
      const answer = await client.query<{ unlocked: boolean }>(unlock, [key])
      client.release()
      return answer.rows[0]?.unlocked === true
    })
  }
  return {
    tryAcquire: (key) => take(key, 'pg_try_advisory_lock'),
    acquire: async (key) => (await take(key, 'pg_advisory_lock')) as Hold,
    close: async () => {},
  }
}

function polling(tryAcquire: Mutex['tryAcquire']): Mutex['acquire'] {
  return async (key) => {
    for (;;) {
      const hold = await tryAcquire(key)
      if (hold !== null) return hold
      await sleep(pollMs)
    }
  }
}

/** A hold whose release has to change its row. */
function changed(pool: Pool, sql: string, values: readonly string[]): Hold {
  return confirmed(async () => (await pool.query(sql, [...values])).rowCount === 1)
}
