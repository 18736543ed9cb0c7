import { contextOf } from './core/lock-service.ts'
import { DriverMissingError, InvalidOptionError, quoted } from './core/errors.ts'
import { parseDuration, shown } from './core/duration.ts'
import { type LockServiceOptions, serviceOptionNames } from './core/options.ts'
import { readOptions } from './core/read-options.ts'
import { askStore } from './core/store-call.ts'
import type { Driver } from './driver/driver.ts'
import { LockService } from './lock-service.ts'
import { redisRefusal } from './redis-refusal.ts'
import {
  expectedUrl,
  parseStoreUrl,
  refuseOtherParameters,
  serviceDefaults,
  shownUrl,
  type StoreQuery,
  takeQuery,
} from './store-url.ts'

/** The options of a `LockService`, except for the driver, which the URL names. They win over the URL's query. */
export interface ConnectOptions extends Omit<LockServiceOptions, 'driver'> {
  /** Which client library to use where the store has two. Default: the first of them that is installed. */
  readonly client?: 'pg' | 'postgres' | 'ioredis' | 'redis' | undefined
}

const connectOptionNames = ['client' as const, ...serviceOptionNames.filter((name) => name !== 'driver')]

/** A driver with a client of its own, that is closed with the service. */
interface Connection {
  readonly driver: Driver
  /** Resolves when the client has connected, where that has to be awaited. */
  readonly connected?: Promise<unknown>
  close(): Promise<void>
}

/**
 * Opens a store by URL, loading driver and client library on demand, and makes sure that it answers.
 *
 * | URL | store | client library |
 * | --- | --- | --- |
 * | `memory:` | this process | none |
 * | `sqlite:./locks.db`, `sqlite:/var/lib/app/locks.db` | a file on this host | `node:sqlite` where Node has it, else `better-sqlite3` |
 * | `postgres://user:password@host/database` | PostgreSQL | `pg`, else `postgres` |
 * | `redis://host:6379/0`, `rediss://…` | Redis | `ioredis`, else `redis` |
 *
 * The query may set `namespace`, `ttl`, `requestTimeout` and `client`, for PostgreSQL `schema` and `tablePrefix`, for
 * Redis `prefix`, for SQLite `tablePrefix`.
 *
 * The environment alone moves an application from one store to another: without a URL here it is that of
 * `LEASEHOLD_URL`, and the namespace that neither the options nor the URL names is that of `LEASEHOLD_NAMESPACE`.
 *
 * @param url default `LEASEHOLD_URL` of the environment, else `memory:`, which guards one process only and has to be
 *   said with `NODE_ENV=production`
 * @returns a service that owns its connections: `close()` ends them
 * @throws InvalidOptionError, DriverMissingError, StoreUnavailableError, StoreUnusableError
 * @example
 * const locks = await connect()
 */
export async function connect(url?: string, options: ConnectOptions = {}): Promise<LockService> {
  const { client, ...service } = readOptions('connect', options, connectOptionNames)
  const { LEASEHOLD_URL, LEASEHOLD_NAMESPACE } = process.env
  const target = parseStoreUrl(url === undefined ? (LEASEHOLD_URL ?? inProcessByDefault()) : url)
  const query = {
    ...(LEASEHOLD_NAMESPACE === undefined ? {} : { namespace: LEASEHOLD_NAMESPACE }),
    ...takeQuery(target),
  }
  const requestTimeoutMs = parseDuration(
    'requestTimeout',
    service.requestTimeout ?? query.requestTimeout ?? 5_000,
    { min: 10, max: Infinity },
  )
  const connection = await open(target, {
    ...query,
    ...(client === undefined ? {} : { client }),
    requestTimeoutMs,
  })
  try {
    const locks = new LockService({ ...serviceDefaults(query), ...service, driver: owning(connection) })
    const context = contextOf(locks)
    await askStore(context, `reach the store at ${shownUrl(target)}`, async (call) => {
      await connection.connected
      return context.session.tasks.poll(call)
    })
    return locks
  } catch (error) {
    await connection.close()
    throw error
  }
}

/**
 * A fleet that forgot to set its URL is not guarded, and nobody looks at a warning.
 *
 * @throws InvalidOptionError in production
 */
function inProcessByDefault(): string {
  if (process.env['NODE_ENV'] !== 'production') return 'memory:'
  throw new InvalidOptionError(
    'url',
    'There is no store URL, and NODE_ENV is production: every process would guard itself alone. Set LEASEHOLD_URL, to memory: if that is meant.',
  )
}

interface ConnectionSettings extends StoreQuery {
  /** How long to wait for a connection; one that answers nothing for twice as long is given up, and made anew. */
  readonly requestTimeoutMs: number
}

async function open(target: URL, settings: ConnectionSettings): Promise<Connection> {
  switch (target.protocol) {
    case 'memory:':
      return openMemory(target)
    case 'sqlite:':
      return openSqlite(target, settings)
    case 'postgres:':
    case 'postgresql:':
      return openPostgres(target, settings)
    case 'redis:':
    case 'rediss:':
      return openRedis(target, settings)
    default:
      throw new InvalidOptionError('url', `There is no driver for ${quoted(target.protocol)}. ${expectedUrl}`)
  }
}

async function openMemory(target: URL): Promise<Connection> {
  refuseOtherParameters(target)
  const { memoryDriver } = await import('./drivers/memory/index.ts')
  const store = target.pathname === '' ? {} : { store: target.pathname }
  return { driver: memoryDriver(store), close: async () => {} }
}

async function openSqlite(target: URL, { tablePrefix }: StoreQuery): Promise<Connection> {
  refuseOtherParameters(target)
  const path = decodedPath(target)
  if (path === '') {
    throw new InvalidOptionError(
      'url',
      'The SQLite URL names no file. Write sqlite:./locks.db or sqlite:/var/lib/app/locks.db.',
    )
  }
  const { sqliteDriver } = await import('./drivers/sqlite/index.ts')
  const driver = sqliteDriver({ path, ...(tablePrefix === undefined ? {} : { tablePrefix }) })
  return { driver, close: async () => {} }
}

/** @throws InvalidOptionError */
function decodedPath({ host, pathname }: URL): string {
  try {
    return decodeURIComponent(host === '' ? pathname : `${host}${pathname}`)
  } catch (cause) {
    const message = 'The path in the SQLite URL cannot be decoded. Write a % in the name of the file as %25.'
    throw new InvalidOptionError('url', message, { cause })
  }
}

async function openPostgres(
  target: URL,
  { client, schema, tablePrefix, requestTimeoutMs }: ConnectionSettings,
): Promise<Connection> {
  const { postgresDriver } = await import('./drivers/postgres/index.ts')
  const options = {
    ...(schema === undefined ? {} : { schema }),
    ...(tablePrefix === undefined ? {} : { tablePrefix }),
  }
  const library = await loadFirst('PostgreSQL', client, {
    pg: () => import('pg').catch(rethrow),
    postgres: () => import('postgres').catch(rethrow),
  })
  if (library.name === 'pg') {
    const pool = new library.module.default.Pool({
      connectionString: target.href,
      max: 8,
      connectionTimeoutMillis: requestTimeoutMs,
      query_timeout: 2 * requestTimeoutMs,
      allowExitOnIdle: true,
    })
    // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
    pool.on('error', () => {})
    const clients = new Set<{ end(): Promise<void> }>()
    pool.on('connect', (each) => clients.add(each))
    pool.on('remove', (each) => clients.delete(each))
    return {
      driver: postgresDriver(pool, options),
      async close() {
        const ended = pool.end()
        // The pool waits for connections that are in use, and one that hangs never comes back.
        for (const each of clients) void each.end().catch(() => {})
        await ended
      },
    }
  }
  const sql = library.module.default(target.href, {
    max: 8,
    prepare: false,
    // Nothing needs it, and where it is cut off postgres.js leaves a rejection to nobody.
    fetch_types: false,
    connect_timeout: requestTimeoutMs / 1_000,
    // Its own goes up to 20 s, in which everything waits although the server is back.
    backoff: (attempt: number) => Math.min(1, 0.01 * 2 ** attempt),
    onnotice: () => {},
  })
  return {
    driver: postgresDriver(sql, options),
    close() {
      // It goes on with what it had planned before: connections that it makes after its end would stay for ever.
      Object.assign(sql.options, { socket: () => Promise.reject(new Error('The client was closed.')) })
      return sql.end({ timeout: 0 })
    },
  }
}

async function openRedis(
  target: URL,
  { client, prefix, requestTimeoutMs }: ConnectionSettings,
): Promise<Connection> {
  const { redisDriver } = await import('./drivers/redis/index.ts')
  // A lease shall not be lost with one connection that hangs.
  const options = { retryConnection: true, ...(prefix === undefined ? {} : { prefix }) }
  const library = await loadFirst('Redis', client, {
    ioredis: () => import('ioredis').catch(rethrow),
    redis: () => import('redis').catch(rethrow),
  })
  if (library.name === 'ioredis') {
    // No queue and no re-sending by the client: the core knows better what may be sent again.
    const redis = new library.module.Redis(target.href, {
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: requestTimeoutMs,
      socketTimeout: 2 * requestTimeoutMs,
      // Nothing is worth waiting for by then, and a server that hangs never says goodbye.
      disconnectTimeout: 0,
    })
    // What it rejects with says only that the connection is closed, and a database that it may not select is not even
    // that: it goes on with database 0, which may be another environment's.
    let trouble: unknown
    const noteTrouble = (error: unknown): void => void (trouble = error)
    redis.on('error', noteTrouble)
    const connectFirst = async (): Promise<void> => {
      await redis.connect().catch((error: unknown) => {
        throw redisRefusal(trouble ?? error)
      })
      if (trouble !== undefined) throw redisRefusal(trouble)
      redis.off('error', noteTrouble)
      redis.on('error', () => {})
      redis.stream.unref()
      redis.on('connect', () => redis.stream.unref())
    }
    return {
      driver: redisDriver(redis, options),
      connected: unlessAwaited(connectFirst()),
      async close() {
        redis.disconnect()
        clearTimeout(redis['socketTimeoutTimer'] as NodeJS.Timeout | undefined)
      },
    }
  }
  const redis = library.module.createClient({
    url: target.href,
    disableOfflineQueue: true,
    socket: { connectTimeout: requestTimeoutMs },
  })
  // By itself it tries again for ever and keeps the reason for its error event.
  const refused = new Promise<never>((_resolve, reject) => {
    redis.on('error', (error: unknown) => reject(redisRefusal(error)))
  })
  refused.catch(() => {})
  const connectFirst = async (): Promise<void> => {
    await Promise.race([redis.connect(), refused])
    redis.unref()
  }
  return {
    driver: redisDriver(redis, options),
    connected: unlessAwaited(connectFirst()),
    async close() {
      if (redis.isOpen) redis.destroy()
    },
  }
}

/** Nobody may come to wait for it: then its failure is nobody's unhandled rejection. */
function unlessAwaited(connected: Promise<void>): Promise<void> {
  connected.catch(() => {})
  return connected
}

/** The same driver, whose session ends the connection when it is closed. */
function owning({ driver, close }: Connection): Driver {
  return {
    name: driver.name,
    abilities: driver.abilities,
    open(namespace) {
      const session = driver.open(namespace)
      return {
        locks: session.locks,
        tasks: session.tasks,
        listen: session.listen?.bind(session),
        async close() {
          await session.close()
          await close()
        },
      }
    },
  }
}

type Loaded<Loaders> = {
  [Name in keyof Loaders]: Loaders[Name] extends () => Promise<infer Module>
    ? { name: Name; module: Module }
    : never
}[keyof Loaders]

/** Loads the library that was asked for, or the first one that is installed. */
async function loadFirst<Loaders extends Record<string, () => Promise<unknown>>>(
  store: string,
  wanted: string | undefined,
  loaders: Loaders,
): Promise<Loaded<Loaders>> {
  const names = Object.keys(loaders)
  if (wanted !== undefined && !names.includes(wanted)) {
    throw new InvalidOptionError(
      'client',
      `client must be one of ${names.join(', ')} for ${store}; got ${shown(wanted)}.`,
    )
  }
  for (const name of wanted === undefined ? names : [wanted]) {
    try {
      return { name, module: await loaders[name]?.() } as Loaded<Loaders>
    } catch (error) {
      if (!isMissing(error, name)) throw error
    }
  }
  const command = `npm install ${wanted ?? names[0]}`
  throw new DriverMissingError(`${store} needs a client library, and none is installed. Run: ${command}`)
}

/** A bundler takes an import whose failure is handled for optional, and lets an application do without that library. */
function rethrow(error: unknown): never {
  throw error
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return (
    (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') && String(message).includes(`'${name}'`)
  )
}
