import type { Driver } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { openPostgresConnections } from '../subjects/postgres.ts'
import { openRedisConnections } from '../subjects/redis.ts'

export interface StorePlace {
  readonly store: 'memory' | 'redis' | 'postgres'
  /** Default for the in-process one alone: there is none. */
  readonly url?: string
  /** What the connections call themselves. */
  readonly application?: string
}

/** Our driver for a store, over connections of this process. */
export async function openDriver({
  store,
  url = '',
  application = 'bench',
}: StorePlace): Promise<{ readonly driver: Driver; close(): Promise<void> }> {
  if (store === 'memory') return { driver: memoryDriver(), close: async () => {} }
  if (store === 'redis') {
    const { ioredis, close } = await openRedisConnections(url)
    return { driver: redisDriver(ioredis), close }
  }
  const { pool, close } = await openPostgresConnections(url, application)
  return { driver: postgresDriver(pool), close }
}
