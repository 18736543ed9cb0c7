// Opens a store as an application would that has a client of its own, for tests and for the processes that they start.
import type { Driver } from 'leasehold/driver'

/** The driver, or which client library it is used through. */
export type ClientName = 'sqlite' | 'pg' | 'postgres.js' | 'ioredis' | 'node-redis'

/** What a process has to know to use a store. */
export interface StoreAddress {
  readonly client: ClientName
  /** For SQLite the path of the file. */
  readonly url: string
}

export interface OpenedStore {
  readonly driver: Driver
  /** Ends the client, at once, as its owner does after closing the service. */
  end(): Promise<void>
}

/** A client with the defaults of its library, and a driver on it. Connects on its own if the library does. */
export async function openStore({ client, url }: StoreAddress): Promise<OpenedStore> {
  switch (client) {
    case 'sqlite': {
      const { sqliteDriver } = await import('leasehold/sqlite')
      return { driver: sqliteDriver({ path: url }), end: async () => {} }
    }
    case 'pg': {
      const { default: pg } = await import('pg')
      const { postgresDriver } = await import('leasehold/postgres')
      const pool = new pg.Pool({ connectionString: url })
      return { driver: postgresDriver(pool), end: () => pool.end() }
    }
    case 'postgres.js': {
      const { default: postgres } = await import('postgres')
      const { postgresDriver } = await import('leasehold/postgres')
      const sql = postgres(url)
      return { driver: postgresDriver(sql), end: () => sql.end({ timeout: 0 }) }
    }
    case 'ioredis': {
      const { Redis } = await import('ioredis')
      const { redisDriver } = await import('leasehold/redis')
      const redis = new Redis(url)
      // Otherwise it writes every failed reconnection to the console.
      redis.on('error', () => {})
      return { driver: redisDriver(redis), end: async () => redis.disconnect() }
    }
    case 'node-redis': {
      const { createClient } = await import('redis')
      const { redisDriver } = await import('leasehold/redis')
      const redis = createClient({ url })
      redis.on('error', () => {})
      void redis.connect().catch(() => {})
      return { driver: redisDriver(redis), end: async () => redis.destroy() }
    }
  }
}
