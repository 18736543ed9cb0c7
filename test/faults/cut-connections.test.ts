// Connections that are cut while they are used: the process lives, leases are kept, waiters are woken (N12, N20, M13, M32).
import { Redis } from 'ioredis'
import { type Lease, onEvent } from 'leasehold'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startRedis, type TestServer } from '../support/servers.ts'
import { freshPostgresUrl, isAvailable } from '../support/stores.ts'
import { recordLosses } from './deadline-witness.ts'
import { openService } from './subjects.ts'

/** How an administrator ends connections. */
interface Administrator {
  readonly url: string
  cutAll(): Promise<unknown>
  /** Only those that are there to be told of releases. @returns how many there were */
  cutSubscriptions(): Promise<number>
  close(): Promise<unknown>
}

async function administerPostgres(): Promise<Administrator> {
  // A database of this file's own: nobody else is cut off.
  const url = await freshPostgresUrl()
  const client = new pg.Client(url)
  await client.connect()
  const cut = (which: string) =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and ${which}`,
    )
  return {
    url,
    cutAll: () => cut('true'),
    cutSubscriptions: async () => (await cut(`query ilike 'listen%'`)).rowCount ?? 0,
    close: () => client.end(),
  }
}

async function administerRedis(): Promise<Administrator> {
  const server: TestServer = await startRedis()
  const client = new Redis(server.url)
  const kill = async (type: string) =>
    Number(await client.call('client', ['kill', 'type', type, 'skipme', 'yes']))
  return {
    url: server.url,
    cutAll: async () => [await kill('normal'), await kill('pubsub')],
    cutSubscriptions: () => kill('pubsub'),
    close: async () => {
      client.disconnect()
      await server.close()
    },
  }
}

function nextRefresh({ fence }: Lease): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = onEvent('leasehold:refresh', (event) => {
      if (event.fence !== fence) return
      unsubscribe()
      resolve()
    })
  })
}

const stores = {
  postgres: { administer: administerPostgres, clients: ['pg', 'postgres.js'] },
  redis: { administer: administerRedis, clients: ['ioredis', 'node-redis'] },
} as const

for (const store of ['postgres', 'redis'] as const) {
  describe.skipIf(!(await isAvailable(store)))(store, () => {
    let administrator: Administrator
    beforeAll(async () => {
      administrator = await stores[store].administer()
    })
    afterAll(() => administrator.close())

    describe.each(stores[store].clients)('%s', (client) => {
      /** A holder, and a waiter of another service that is subscribed and sleeps. */
      const openScene = async () => {
        const address = { client, url: administrator.url }
        const holder = await openService(address)
        const waiter = await openService(address, { namespace: holder.namespace })
        const lease = (await holder.acquire('k', { ttl: 20_000, heartbeat: 30 }))!
        const waiting = waiter.acquire('k', { wait: Infinity })
        waiting.catch(() => {})
        await expect.poll(async () => (await holder.peek('k'))?.awaited, { interval: 20 }).toBe(true)
        return { lease, waiting }
      }

      test('leases outlive their connections, however often those are cut (M32, N20, M13)', async () => {
        const losses = recordLosses()
        const { lease, waiting } = await openScene()
        for (let cut = 0; cut < 10; cut++) {
          await administrator.cutAll()
          await nextRefresh(lease)
        }
        expect(losses).toEqual([])
        await expect.poll(() => lease.release()).toBe('released')
        expect((await waiting)!.fence).toBeGreaterThan(lease.fence)
      })

      test('a waiter whose subscription was cut learns of the release all the same (M32)', async () => {
        const { lease, waiting } = await openScene()
        await expect.poll(() => administrator.cutSubscriptions()).toBe(1)
        expect(await lease.release()).toBe('released')
        const before = performance.now()
        expect((await waiting)!.isHeld()).toBe(true)
        expect(performance.now() - before).toBeLessThan(2_000)
      })
    })
  })
}

describe.skipIf(!(await isAvailable('postgres')))('postgres', () => {
  test.each(['pg', 'postgres.js'] as const)(
    'a statement whose connection is terminated while it waits is made again: %s (M32)',
    async (client) => {
      const url = await freshPostgresUrl()
      const [admin, other] = [new pg.Client(url), new pg.Client(url)]
      await Promise.all([admin.connect(), other.connect()])
      onTestFinished(async () => void (await Promise.all([admin.end(), other.end()])))
      const locks = await openService({ client, url })
      const lease = (await locks.acquire('k'))!
      await other.query('begin')
      await other.query('select from leasehold_leases for update')
      const releasing = lease.release()
      const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`
      for (let times = 0; times < 3; times++) {
        await expect.poll(async () => (await admin.query(terminate)).rowCount, { interval: 5 }).toBe(1)
      }
      await other.query('commit')
      expect(await releasing).toBe('released')
      expect(await locks.peek('k')).toBe(null)
    },
  )
})

describe.skipIf(!(await isAvailable('redis')))('redis that forgets its scripts', () => {
  test.each(['ioredis', 'node-redis'] as const)('keeps its leases: %s (N12)', async (client) => {
    await using server = await startRedis()
    const admin = new Redis(server.url)
    onTestFinished(() => admin.disconnect())
    const losses = recordLosses()
    const locks = await openService({ client, url: server.url }, { requestTimeout: 500 })
    const lease = (await locks.acquire('k', { ttl: 5_000, heartbeat: 30 }))!
    for (let round = 0; round < 5; round++) {
      await admin.script('FLUSH')
      await lease.extend(5_000)
      await admin.script('FLUSH')
      await nextRefresh(lease)
    }
    await admin.script('FLUSH')
    expect(await locks.acquire('k')).toBe(null)
    expect(await lease.release()).toBe('released')
    expect(losses).toEqual([])
  })
})
