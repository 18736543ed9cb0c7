import { DriverFault, InvalidOptionError } from '../../core/errors.ts'
import { holds } from '../../core/read-options.ts'
import { listenBy } from './listening.ts'
import type { Listen, PgListenClient, PostgresJsListenClient } from './listening.ts'

/**
 * A `Pool` or `Client` of node-postgres, a `DataSource` of TypeORM, or anything else that runs one statement and answers its rows, as an array or
 * as `{ rows }`. All values are strings. Every call must be a transaction of its own.
 */
export interface QueryClient {
  query(text: string, values: string[]): Promise<unknown>
}

/** The `sql` of postgres.js. */
export interface PostgresJsClient {
  unsafe(text: string, values?: string[], options?: { prepare?: boolean }): PromiseLike<unknown>
  readonly begin: (...args: never[]) => Promise<unknown>
  readonly options: object
}

export type PostgresClient = QueryClient | PostgresJsClient

/** One statement as the driver keeps it. */
export interface Statement {
  /** Unique to its text, for clients that prepare by name. */
  readonly name: string
  readonly text: string
}

/** The borrowed client, seen alike whatever it is. */
export interface Link {
  /** Runs one statement in a transaction of its own; answers its rows. */
  run(statement: Statement, values: readonly string[]): Promise<readonly unknown[]>
  /** Opens a connection of its own to listen on; absent where the client cannot make one. */
  readonly listen: Listen | undefined
  /** Keeps a lost connection of the client from becoming an uncaught `'error'` event, until the answer is called. */
  guard(): () => void
}

/**
 * @param named whether to prepare statements by name, where the client can
 * @throws InvalidOptionError for something that is no client
 */
export function linkTo(client: PostgresClient, named: boolean): Link {
  if (holds(() => isPostgresJs(client))) return linkToPostgresJs(client as PostgresJsClient, named)
  if (!holds(() => typeof client === 'object' && typeof (client as QueryClient).query === 'function')) {
    throw new InvalidOptionError(
      'client',
      'client must be a pg Pool or Client, the sql function of postgres.js, a DataSource of TypeORM, or an object with query(text, values).',
    )
  }
  return linkToQueryClient(client as QueryClient, named)
}

function linkToQueryClient(client: QueryClient, named: boolean): Link {
  if (isDataSource(client)) return linkToDataSource(client, named)
  if (isPgPool(client)) {
    return {
      run: (statement, values) => runPg(client, statement, values, named),
      // The options object itself: the password in it is hidden from a copy.
      listen: listenBy(() => new client.Client(client.options)),
      guard: guardOf(client),
    }
  }
  if (isPgClient(client)) return linkToPgClient(client, named)
  return {
    run: async ({ text }, values) => rowsOf(await client.query(text, [...values])),
    listen: undefined,
    guard: () => () => {},
  }
}

/** What node-postgres's clients and pools have beyond `query`. */
interface PgQueryable {
  query(query: string | { name: string; text: string; values: string[] }, values?: string[]): Promise<unknown>
  on(event: 'error', listener: () => void): unknown
  removeListener(event: 'error', listener: () => void): unknown
}

interface PgPool extends PgQueryable {
  readonly Client: new (options: object) => PgListenClient
  readonly options: object
}

interface PgClient extends PgQueryable {
  readonly connectionParameters: object
}

function linkToPgClient(client: PgClient, named: boolean): Link {
  let previous: Promise<unknown> = Promise.resolve()
  return {
    // One at a time: node-postgres is giving up its queue of statements in a client.
    run(statement, values) {
      const next = previous.then(() => runPg(client, statement, values, named))
      previous = next.catch(() => {})
      return next
    },
    listen: listenBy(() => {
      const Client = client.constructor as PgPool['Client']
      return new Client(client.connectionParameters)
    }),
    guard: guardOf(client),
  }
}

async function runPg(
  client: PgQueryable,
  { name, text }: Statement,
  values: readonly string[],
  named: boolean,
): Promise<readonly unknown[]> {
  if (named) return rowsOf(await client.query({ name, text, values: [...values] }))
  return rowsOf(await client.query(text, [...values]))
}

/** What a `DataSource` of TypeORM has beyond `query`. */
interface DataSource {
  readonly isInitialized: boolean
  readonly options: { readonly type: unknown }
  /** `master`: the pool of node-postgres, while it is initialized. */
  readonly driver: { readonly master?: QueryClient }
}

/**
 * Over its pool, which it has from its initialization to its end: so its log is not filled with renewals, faults are
 * those of node-postgres, and a release can wake waiters.
 */
function linkToDataSource(source: DataSource & QueryClient, named: boolean): Link {
  if (source.options.type !== 'postgres') {
    throw new InvalidOptionError(
      'client',
      `The DataSource is of type ${JSON.stringify(source.options.type)}: the PostgreSQL driver needs one of type "postgres".`,
    )
  }
  const pool = (): (QueryClient & PgPool) | null => {
    if (!source.isInitialized) {
      throw new DriverFault(
        'not-sent',
        'The DataSource is not initialized, or was destroyed. Call initialize() before, and destroy() after Leasehold is closed.',
      )
    }
    const { master } = source.driver
    return master !== undefined && isPgPool(master) ? master : null
  }
  return {
    async run(statement, values) {
      const master = pool()
      if (master !== null) return runPg(master, statement, values, named)
      return rowsOf(await source.query(statement.text, [...values]))
    },
    listen: listenBy(() => {
      const master = pool()
      if (master !== null) return new master.Client(master.options)
      throw new DriverFault('unusable', 'The DataSource has no pool of node-postgres to make a client of.')
    }),
    // TypeORM listens to it.
    guard: () => () => {},
  }
}

/** One listener however many sessions: each more would bring the emitter nearer to its warning. */
function guardOf(client: PgQueryable): () => () => void {
  const ignore = () => {}
  const guards = new Set<object>()
  return () => {
    const own = {}
    if (guards.size === 0) client.on('error', ignore)
    guards.add(own)
    return () => {
      if (guards.delete(own) && guards.size === 0) client.removeListener('error', ignore)
    }
  }
}

function linkToPostgresJs(sql: PostgresJsClient, named: boolean): Link {
  if (typeof sql.begin !== 'function' || typeof sql.options !== 'object') {
    throw new InvalidOptionError(
      'client',
      'client must be the sql function that postgres() returned, not the one of a transaction or a reserved connection.',
    )
  }
  return {
    run: async ({ text }, values) => rowsOf(await sql.unsafe(text, [...values], { prepare: named })),
    // Not `sql.listen`: that shares one connection with the user's own listeners, leaves it open, tries only once to
    // listen again when the connection has ended, and is deaf for good without a word if that fails.
    listen: listenBy(async (options) => {
      const postgres = await loadPostgresJs()
      const own = { idle_timeout: null, max_lifetime: null, no_subscribe: true }
      // What postgres() made of the user's options, but for the state in it.
      return postgres({
        ...sql.options,
        ...own,
        ...options,
        shared: { retries: 0, typeArrayMap: {} },
        parameters: {},
      })
    }),
    guard: () => () => {},
  }
}

/** By a name that is no literal, so that bundlers of applications that use another client don't look for it. */
async function loadPostgresJs(
  name: string = 'postgres',
): Promise<(options: object) => PostgresJsListenClient> {
  const module = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
    default: (options: object) => PostgresJsListenClient
  }
  return module.default
}

function rowsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result
  const { rows } = (result ?? {}) as { rows?: unknown }
  if (Array.isArray(rows)) return rows
  throw new DriverFault(
    'unusable',
    'The client answered in a way that is not known. query(text, values) must answer an array of rows or { rows }.',
  )
}

function isPostgresJs(client: PostgresClient): boolean {
  return typeof client === 'function' && typeof (client as Partial<PostgresJsClient>).unsafe === 'function'
}

function isPgPool(client: QueryClient): client is QueryClient & PgPool {
  const { Client, options, totalCount } = client as Partial<PgPool> & { totalCount?: unknown }
  return typeof Client === 'function' && typeof options === 'object' && typeof totalCount === 'number'
}

function isDataSource(client: QueryClient): client is QueryClient & DataSource {
  const { isInitialized, options, driver, createQueryRunner } = client as Partial<DataSource> & {
    createQueryRunner?: unknown
  }
  const parts = [options, driver]
  return (
    typeof isInitialized === 'boolean' &&
    typeof createQueryRunner === 'function' &&
    parts.every((part) => typeof part === 'object' && part !== null)
  )
}

function isPgClient(client: QueryClient): client is QueryClient & PgClient {
  const { connectionParameters, connect } = client as Partial<PgClient> & { connect?: unknown }
  return typeof connectionParameters === 'object' && typeof connect === 'function'
}
