// What the store is asked, counted at the store or at the client: one round trip for each thing that is done, however
// many leases it is done to.
import { Redis } from 'ioredis'
import { LockService, onEvent } from 'leasehold'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../support/servers.ts'
import { freshPostgresUrl, isAvailable } from '../support/stores.ts'

const leases = 1_000

/** A store that counts. */
interface Meter {
  readonly locks: LockService
  /** How many calls it has answered since the last time. */
  spent(): Promise<number>
  /** The most calls that renew all leases once. */
  readonly perHeartbeat: number
}

async function redisMeter(): Promise<Meter> {
  const server = await startRedis()
  const client = new Redis(server.url)
  const admin = new Redis(server.url)
  const locks = new LockService({ driver: redisDriver(client) })
  onTestFinished(async () => {
    await locks.close()
    client.disconnect()
    admin.disconnect()
    await server.close()
  })
  return {
    locks,
    perHeartbeat: 2,
    async spent() {
      const stats = await admin.info('commandstats')
      await admin.config('RESETSTAT')
      // What scripts call is counted too; what clients send are scripts, if it is ours.
      const sent = [...stats.matchAll(/cmdstat_(?:evalsha|eval|publish|script\S*):calls=(\d+)/g)]
      return sent.reduce((sum, [, calls]) => sum + Number(calls), 0)
    },
  }
}

async function postgresMeter(): Promise<Meter> {
  const pool = new pg.Pool({ connectionString: await freshPostgresUrl() })
  let statements = 0
  const counting = {
    query: (text: string, values: string[]) => {
      statements++
      return pool.query(text, values)
    },
  }
  const locks = new LockService({ driver: postgresDriver(counting) })
  onTestFinished(async () => {
    await locks.close()
    await pool.end()
  })
  return {
    locks,
    perHeartbeat: 1,
    async spent() {
      const spent = statements
      statements = 0
      return spent
    },
  }
}

const meters = { redis: redisMeter, postgres: postgresMeter } as const

for (const store of ['redis', 'postgres'] as const) {
  describe.skipIf(!(await isAvailable(store)))(store, () => {
    test('one for an acquire, granted or held, one for an extension, a look and a release', async () => {
      const { locks, spent } = await meters[store]()
      // The tables are looked for, and the scripts are loaded, once.
      const first = (await locks.acquire('first'))!
      await first.extend('1m')
      await locks.peek('first')
      await first.release()

      await spent()
      const lease = (await locks.acquire('k'))!
      expect(await spent()).toBe(1)
      expect(await locks.acquire('k')).toBe(null)
      expect(await spent()).toBe(1)
      await lease.extend('1m')
      expect(await spent()).toBe(1)
      await locks.peek('k')
      expect(await spent()).toBe(1)
      await lease.release()
      expect(await spent()).toBe(1)
    })

    test(`no more for the heartbeat of ${leases} leases, and for taking and giving them back at once`, async () => {
      const { locks, spent, perHeartbeat } = await meters[store]()
      await (await locks.acquire('first'))?.release()
      await spent()
      const all = await Promise.all(
        Array.from({ length: leases }, (_, index) =>
          locks.acquire(`k${index}`, { ttl: 30_000, heartbeat: 400 }),
        ),
      )
      expect(await spent()).toBeLessThanOrEqual(perHeartbeat)

      const beats = 2
      // The first one loads the script.
      await renewals(leases)
      await spent()
      await renewals(beats * leases)
      const forRenewals = await spent()
      expect(forRenewals).toBeGreaterThan(0)
      expect(forRenewals).toBeLessThanOrEqual(beats * perHeartbeat)

      const released = await Promise.all(all.map((lease) => lease!.release()))
      expect(new Set(released)).toEqual(new Set(['released']))
      expect(await spent()).toBeLessThanOrEqual(perHeartbeat)
      expect(await locks.list()).toEqual([])
    })
  })
}

/** Resolves when so many renewals have been confirmed. */
function renewals(count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count
    const unsubscribe = onEvent('leasehold:refresh', () => {
      if (--left > 0) return
      unsubscribe()
      resolve()
    })
  })
}
