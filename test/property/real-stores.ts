import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Driver } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { sqliteDriver } from 'leasehold/sqlite'
import pg from 'pg'
import { freshNamespace, isAvailable, postgresUrl, redisUrl } from '../support/stores.ts'

export interface RealStore {
  readonly name: string
  readonly isHere: boolean
  open(): Promise<{ readonly driver: Driver; close(): Promise<unknown> }>
}

/** Every kind of store, the server of each shared with other files. */
export const realStores: readonly RealStore[] = [
  {
    name: 'memory',
    isHere: true,
    open: async () => ({ driver: memoryDriver({ store: freshNamespace() }), close: async () => {} }),
  },
  {
    name: 'sqlite',
    isHere: true,
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'leasehold-fuzz-'))
      return {
        driver: sqliteDriver({ path: join(folder, 'fuzz.db') }),
        close: async () => rmSync(folder, { recursive: true, force: true }),
      }
    },
  },
  {
    name: 'redis',
    isHere: await isAvailable('redis'),
    async open() {
      const client = new Redis(await redisUrl())
      return { driver: redisDriver(client), close: async () => client.disconnect() }
    },
  },
  {
    name: 'postgres',
    isHere: await isAvailable('postgres'),
    async open() {
      const pool = new pg.Pool({ connectionString: await postgresUrl(), max: 3 })
      return { driver: postgresDriver(pool, { listen: false }), close: () => pool.end() }
    },
  },
]
