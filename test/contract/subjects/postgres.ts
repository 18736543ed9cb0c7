import pg from 'pg'
import type { ContractSubject, RawAbility, RawStore } from 'leasehold/testing'
import { postgresDriver, type PostgresClient } from 'leasehold/postgres'
import { freshPostgresUrl } from '../../support/stores.ts'

/** A client as an application would have made it. */
export interface OpenClient {
  readonly client: PostgresClient
  close(): Promise<unknown>
}

export interface ClientKind {
  readonly name: string
  /** Connects to a database that is there. */
  open(url: string): Promise<OpenClient>
  /** A client whose calls cannot reach a server. */
  openUnreachable(url: string): Promise<OpenClient>
  /** Whether the driver can listen over a connection that it makes itself. */
  readonly push: boolean
  /** Whether the client makes a new connection when its own was cut. */
  readonly reconnects: boolean
}

/** Nobody listens on this port. */
export const nowhere = 'postgres://nobody@127.0.0.1:1/nowhere'

export function postgresSubject(kind: ClientKind): ContractSubject {
  const raw: RawAbility[] = [
    'forgetKey',
    'forgetTask',
    'readFence',
    'writeFence',
    'countKeys',
    'lockKey',
    'lockTask',
  ]
  return {
    name: `postgres / ${kind.name}`,
    expects: {
      push: kind.push,
      clock: 'server',
      keepsFreeRecords: true,
      raw: kind.reconnects ? [...raw, 'disturb'] : raw,
      unreachable: true,
    },
    open: async () => {
      const url = await freshPostgresUrl()
      const operator = new pg.Pool({ connectionString: url })
      operator.on('error', () => {})
      const opened = [await kind.open(url), await kind.open(url), await kind.openUnreachable(url)] as const
      const [first, second, unreachable] = opened.map(({ client }) => postgresDriver(client)) as [
        ReturnType<typeof postgresDriver>,
        ReturnType<typeof postgresDriver>,
        ReturnType<typeof postgresDriver>,
      ]
      return {
        first,
        second,
        unreachable,
        raw: rawPostgres(operator),
        close: async () => {
          await Promise.all(opened.map((each) => each.close()))
          await operator.end()
        },
      }
    },
  }
}

export function rawPostgres(operator: pg.Pool): RawStore {
  const query = async (text: string, values: readonly unknown[] = []) =>
    (await operator.query<Record<string, string>>(text, [...values])).rows
  const lock = async (text: string, values: readonly string[]) => {
    const connection = await operator.connect()
    await connection.query('begin')
    await connection.query(text, [...values])
    return async () => {
      await connection.query('rollback')
      connection.release()
    }
  }
  return {
    forgetKey: async (namespace, key) => {
      await query('delete from leasehold_leases where namespace = $1 and key = $2', [namespace, key])
    },
    forgetTask: async (namespace, task) => {
      await query('delete from leasehold_tasks where namespace = $1 and task = $2', [namespace, task])
    },
    readFence: async (namespace, key) => {
      const text = 'select fence::text from leasehold_leases where namespace = $1 and key = $2'
      return (await query(text, [namespace, key]))[0]?.['fence'] ?? null
    },
    writeFence: async (namespace, key, fence) => {
      const text = 'update leasehold_leases set fence = $3::bigint where namespace = $1 and key = $2'
      await query(text, [namespace, key, String(fence)])
    },
    countKeys: async (namespace) => {
      const text = 'select count(*) from leasehold_leases where namespace = $1'
      return Number((await query(text, [namespace]))[0]?.['count'])
    },
    lockKey: (namespace, key) =>
      lock('select from leasehold_leases where namespace = $1 and key = $2 for update', [namespace, key]),
    lockTask: (namespace, task) =>
      lock('select from leasehold_tasks where namespace = $1 and task = $2 for update', [namespace, task]),
    // The database is this file's own, so that no other test's connections are cut.
    disturb: async () => {
      await query(`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and state = 'idle'`)
    },
  }
}
