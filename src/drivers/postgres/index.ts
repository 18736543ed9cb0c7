import { requireOption } from '../../core/errors.ts'
import { readOptions } from '../../core/read-options.ts'
import type { Driver } from '../../driver/driver.ts'
import { linkTo } from './clients.ts'
import type { PostgresClient } from './clients.ts'
import { listenBy } from './listening.ts'
import type { ListenClientFactory } from './listening.ts'
import { locksIn } from './locks.ts'
import { channelName, Notices } from './notices.ts'
import { schemaStatements, tableNames } from './schema.sql.ts'
import type { TableNames } from './schema.sql.ts'
import { PostgresStore } from './store.ts'
import { tasksIn } from './tasks.ts'

export type { PostgresClient, PostgresJsClient, QueryClient } from './clients.ts'
export type {
  ListenClientFactory,
  PgListenClient,
  PostgresJsListenClient,
  PostgresJsListenOptions,
} from './listening.ts'

/** Where the tables are. */
export interface PostgresSchemaOptions {
  /** The schema that holds the tables. Default: the first one in the connection's search path. */
  readonly schema?: string | undefined
  /**
   * What the tables' names begin with: letters, digits and underscores, at most 40. Services with another prefix share
   * nothing. Default is `'leasehold_'`.
   */
  readonly tablePrefix?: string | undefined
}

export interface PostgresDriverOptions extends PostgresSchemaOptions {
  /**
   * Whether to make the tables if they are not there; processes that try it at once all succeed. With `false` the role
   * needs no right to create, and a missing table is an error that says how to make it: see {@link postgresSchema}.
   * Default is `true`.
   */
  readonly createTables?: boolean | undefined
  /**
   * How waiters learn of a release. `true`: by LISTEN, on one more connection per namespace, open only while somebody
   * waits and made with the options of the given client. `false`: by polling, without another connection. A function:
   * by LISTEN on the client that it answers, new and not connected; needed where the given client is neither of
   * node-postgres nor of postgres.js, or goes through a pooler that shares connections out by transaction. Default is
   * `true`.
   *
   * @example
   * postgresDriver(pooledClient, { listen: () => new pg.Client(directUrl) })
   * @example
   * postgresDriver(pooledClient, { listen: (options) => postgres(directUrl, options) })
   */
  readonly listen?: boolean | ListenClientFactory | undefined
  /**
   * Whether to prepare statements by name, once per connection. Saves the server the planning, and postgres.js a round
   * trip, in every call; fails behind a pooler that shares connections out by transaction. Default is `false`.
   */
  readonly namedStatements?: boolean | undefined
}

/**
 * Leases and tasks in PostgreSQL 12 or later, in tables of its own.
 *
 * The client is borrowed: it is never closed, and every call is one statement in a transaction of its own. So a `Client`
 * must not be inside a transaction, and a pool should have two connections or more.
 *
 * @param client a `Pool` or `Client` of node-postgres, the `sql` of postgres.js, a `DataSource` of TypeORM, or any
 *   object with `query(text, values)`
 * @throws InvalidOptionError for anything else, and for an option that cannot be used
 *
 * @example
 * const locks = new LockService({ driver: postgresDriver(new pg.Pool()) })
 */
export function postgresDriver(client: PostgresClient, options: PostgresDriverOptions = {}): Driver {
  const { tables, createTables, listen: wish, namedStatements } = resolvePostgresDriverOptions(options)
  const link = linkTo(client, namedStatements)
  const listen = typeof wish === 'function' ? listenBy(wish) : wish ? link.listen : undefined
  const store = new PostgresStore(link, tables, createTables)
  const openLocks = locksIn(store)
  const openTasks = tasksIn(store)
  return {
    name: 'postgres',
    abilities: { push: listen !== undefined, clock: 'server', reach: 'network', minTtlMs: 1, maxBatch: 1000 },
    open(namespace) {
      const scope = { namespace, channel: channelName(tables, namespace) }
      const notices = listen && new Notices(store, listen, scope)
      const unguard = link.guard()
      return {
        locks: openLocks(scope),
        tasks: openTasks(scope),
        listen: notices && ((listener) => notices.open(listener)),
        async close() {
          unguard()
          await notices?.close()
        },
      }
    },
  }
}

/**
 * The statements that make the tables, for a migration: run them once, in one transaction.
 *
 * @throws InvalidOptionError for a name that cannot be used
 */
export function postgresSchema(options: PostgresSchemaOptions = {}): string {
  const tables = resolveTableNames(readOptions('postgresSchema', options, ['schema', 'tablePrefix']))
  const makeSchema = tables.schema === null ? [] : [`create schema if not exists ${tables.schema}`]
  return [...makeSchema, ...schemaStatements(tables)].map((statement) => `${statement};\n`).join('\n')
}

interface ResolvedPostgresDriverOptions {
  readonly tables: TableNames
  readonly createTables: boolean
  readonly listen: boolean | ListenClientFactory
  readonly namedStatements: boolean
}

const optionNames = ['schema', 'tablePrefix', 'createTables', 'listen', 'namedStatements'] as const

function resolvePostgresDriverOptions(given: PostgresDriverOptions): ResolvedPostgresDriverOptions {
  const options = readOptions('postgresDriver', given, optionNames)
  const { createTables = true, listen = true, namedStatements = false } = options
  const canListen = typeof listen === 'boolean' || typeof listen === 'function'
  requireOption(canListen, 'listen', 'true, false, or a function that answers a new client')
  for (const [name, value] of Object.entries({ createTables, namedStatements })) {
    requireOption(typeof value === 'boolean', name, 'true or false')
  }
  return { tables: resolveTableNames(options), createTables, listen, namedStatements }
}

function resolveTableNames({ schema, tablePrefix = 'leasehold_' }: PostgresSchemaOptions): TableNames {
  return tableNames(schema === undefined ? null : schema, tablePrefix)
}
