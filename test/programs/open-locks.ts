// Opens a service on any of the stores, for tests and for the processes that they start.
import { connect, LockService, type LockServiceOptions } from 'leasehold'
import type { Driver } from 'leasehold/driver'

/** The driver, and which client library it is used through. */
export type ClientName = 'sqlite' | 'pg' | 'postgres.js' | 'ioredis' | 'node-redis'

/** What a process has to know to use a store. */
export interface StoreAddress {
  readonly client: ClientName
  /** For SQLite the path of the file. For ioredis also `sentinel://name?at=host:port&at=…`; see `sentinelOptions`. */
  readonly url: string
  /**
   * Whose the client is: made by `connect(url)`, or the application's own, with the defaults of its library. Default is
   * the application's.
   */
  readonly by?: 'connect' | 'application'
  /** The application's client does not keep the process alive while nothing is asked, where the library can do that. */
  readonly quiet?: boolean
  /** How many connections the application's pool has, where it has one. Default: what its library says. */
  readonly connections?: number
}

/** A driver on a client, and what the client's owner does with it. */
export interface OpenedClient {
  readonly driver: Driver
  /** Foreign work holds every connection of the client for so long. Resolves when it is over, also where it was cut off. */
  occupy(ms: number): Promise<void>
  end(): Promise<void>
}

export interface OpenedLocks {
  readonly locks: LockService
  /** Closes the service, and then the client if that is the application's. */
  end(): Promise<void>
}

export async function openLocks(
  address: StoreAddress,
  options: Omit<LockServiceOptions, 'driver'>,
): Promise<OpenedLocks> {
  if (address.by === 'connect') {
    const locks = await connect(...connectArguments(address, options))
    return { locks, end: () => locks.close() }
  }
  const { driver, end } = await openClient(address)
  const locks = new LockService({ ...options, driver })
  return {
    locks,
    end: async () => {
      await locks.close()
      await end()
    },
  }
}

/** For `connect`, with the client library of the address. */
export function connectArguments(
  { client, url }: StoreAddress,
  options: Omit<LockServiceOptions, 'driver'>,
): Parameters<typeof connect> {
  if (client === 'sqlite') return [`sqlite:${url}`, options]
  const libraries = {
    pg: 'pg',
    'postgres.js': 'postgres',
    ioredis: 'ioredis',
    'node-redis': 'redis',
  } as const
  return [url, { ...options, client: libraries[client] }]
}

/** A driver on a client with the defaults of its library, and how its owner ends the client. */
export async function openClient({
  client,
  url,
  quiet = false,
  connections = 10,
}: StoreAddress): Promise<OpenedClient> {
  switch (client) {
    case 'sqlite': {
      const { sqliteDriver } = await import('leasehold/sqlite')
      return { driver: sqliteDriver({ path: url }), occupy: async () => {}, end: async () => {} }
    }
    case 'pg': {
      const { default: pg } = await import('pg')
      const { postgresDriver } = await import('leasehold/postgres')
      const pool = new pg.Pool({ connectionString: url, allowExitOnIdle: quiet, max: connections })
      const occupy = (ms: number) => allOf(connections, () => pool.query('select pg_sleep($1)', [ms / 1_000]))
      return { driver: postgresDriver(pool), occupy, end: () => pool.end() }
    }
    case 'postgres.js': {
      const { default: postgres } = await import('postgres')
      const { postgresDriver } = await import('leasehold/postgres')
      // As its page advises: a lookup of types that is cut off leaves a rejection to nobody.
      const sql = postgres(url, { onnotice: () => {}, fetch_types: false, max: connections })
      const end = (): Promise<void> => {
        // Or a connection that it had planned before its end is made all the same, and stays.
        Object.assign(sql.options, { socket: () => Promise.reject(new Error('The client was ended.')) })
        return sql.end({ timeout: 0 })
      }
      const occupy = (ms: number) => allOf(connections, () => sql`select pg_sleep(${ms / 1_000})`)
      return { driver: postgresDriver(sql), occupy, end }
    }
    case 'ioredis': {
      const { Redis } = await import('ioredis')
      const { redisDriver } = await import('leasehold/redis')
      const redis = url.startsWith('sentinel:') ? new Redis(sentinelOptions(url)) : new Redis(url)
      // Otherwise it writes every failed reconnection to the console.
      redis.on('error', () => {})
      if (quiet) redis.once('ready', () => redis.stream.unref())
      const occupy = (ms: number) => allOf(1, () => redis.blpop(nothing, ms / 1_000))
      return { driver: redisDriver(redis), occupy, end: async () => redis.disconnect() }
    }
    case 'node-redis': {
      const { createClient } = await import('redis')
      const { redisDriver } = await import('leasehold/redis')
      const redis = createClient({ url })
      // Its documentation asks for this: without it the process ends when the connection is lost.
      redis.on('error', () => {})
      if (quiet) redis.unref()
      void redis.connect().catch(() => {})
      const occupy = (ms: number) => allOf(1, () => redis.blPop(nothing, ms / 1_000))
      return { driver: redisDriver(redis), occupy, end: async () => redis.destroy() }
    }
  }
}

type RedisAddress = { readonly host: string; readonly port: number }

interface SentinelOptions {
  readonly name: string
  readonly sentinels: RedisAddress[]
  readonly natMap: Record<string, RedisAddress>
  readonly failoverDetector: boolean
  sentinelRetryStrategy(): number
}

/**
 * What ioredis asks Sentinels with. The URL names the watched primary, the Sentinels (`at`), and by `via` which address
 * leads to one that the Sentinels announce: `host:port>host:port`.
 */
function sentinelOptions(url: string): SentinelOptions {
  const { hostname: name, searchParams } = new URL(url)
  const toAddress = (text: string): RedisAddress => {
    const [host = '', port] = text.split(':')
    return { host, port: Number(port) }
  }
  const ways = searchParams.getAll('via').map((way) => way.split('>') as [string, string])
  return {
    name,
    sentinels: searchParams.getAll('at').map(toAddress),
    natMap: Object.fromEntries(ways.map(([announced, way]) => [announced, toAddress(way)])),
    sentinelRetryStrategy: () => 50,
    failoverDetector: searchParams.has('detects'),
  }
}

/** A list that nobody writes to: whoever waits for it blocks its connection. */
const nothing = 'nothing ever'

async function allOf(times: number, work: () => PromiseLike<unknown>): Promise<void> {
  await Promise.allSettled(Array.from({ length: times }, work))
}
