// The store is down when it is needed, goes away in the middle, and comes back (N3, N18, N19, N20, M9, M13, M26, M30).
import { connect, type LeaseholdError } from 'leasehold'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/servers/free-port.mjs'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { startPostgres, startRedis, type TestServer } from '../support/servers.ts'
import { isAvailable } from '../support/stores.ts'
import type { ClientName } from '../programs/open-locks.ts'
import { recordLosses, witnessDeadline } from './deadline-witness.ts'
import { openService } from './subjects.ts'

const requestTimeout = 400
const unavailable = { code: 'STORE_UNAVAILABLE' }
const servers = {
  postgres: { start: startPostgres, clients: ['pg', 'postgres.js'] },
  redis: { start: startRedis, clients: ['ioredis', 'node-redis'] },
} as const
const library = { pg: 'pg', 'postgres.js': 'postgres', ioredis: 'ioredis', 'node-redis': 'redis' } as const

/** Runs a call that has to reject as unavailable, and measures it. */
async function expectUnavailable(call: Promise<unknown>, withinMs: number): Promise<void> {
  const before = performance.now()
  await expect(call).rejects.toMatchObject(unavailable)
  expect(performance.now() - before).toBeLessThan(withinMs)
}

function codeOf(error: unknown): string {
  return (error as LeaseholdError).code
}

for (const store of ['postgres', 'redis'] as const) {
  describe.skipIf(!(await isAvailable(store)))(store, () => {
    let server: TestServer

    beforeAll(async () => {
      server = await servers[store].start()
    })
    afterAll(() => server.close())

    describe.each(servers[store].clients)('%s', (client: Exclude<ClientName, 'sqlite'>) => {
      const address = () => ({ client, url: server.url })

      test('connect() says that the store is down, in bounded time', async () => {
        const url = new URL(server.url)
        url.port = String(await freePort())
        await expectUnavailable(connect(url.href, { client: library[client], requestTimeout }), 2_500)
      })

      test('connect() says that the store does not answer, in bounded time', async () => {
        await using proxy = await startFaultProxy(server.url)
        await proxy.set('blackhole')
        await expectUnavailable(connect(proxy.url, { client: library[client], requestTimeout }), 2_500)
      })

      test('a service whose store is down says so, never null, and works when the store has come (G7, N19, N39)', async () => {
        await server.kill()
        const locks = await openService(address(), { requestTimeout, ttl: 600 })
        const waiting = locks.acquire('waited for', { wait: Infinity, ttl: 30_000 })
        waiting.catch(() => {})
        // A client may keep these and send them when the store has come: then they hold the key for nobody.
        await expectUnavailable(locks.acquire('k', { ttl: '1h' }), 2_500)
        await expectUnavailable(locks.acquire('k', { ttl: '1h', wait: 400 }), 2_500)
        await expectUnavailable(locks.peek('k'), 2_500)
        await expectUnavailable(locks.list(), 2_500)
        await server.start()
        expect((await waiting)!.isHeld()).toBe(true)
        const lease = await locks.acquire('k', { wait: 5_000, ttl: 30_000 })
        expect(await locks.peek('k')).toMatchObject({ fence: lease!.fence })
      })

      test('a store that is killed ends its leases by their deadline, once, and comes back (N3, N18–N20, M9, M13, M26)', async () => {
        const losses = recordLosses()
        const locks = await openService(address(), { requestTimeout, ttl: 600 })
        const other = await openService(address(), { namespace: locks.namespace, requestTimeout, ttl: 600 })
        const held = (await locks.acquire('held'))!
        const idle = (await locks.acquire('idle', { heartbeat: false }))!
        const waiting = other.acquire('held', { wait: Infinity, ttl: 30_000 })
        waiting.catch(() => {})
        const atDeadlines = [witnessDeadline(held), witnessDeadline(idle)]
        await expect.poll(async () => (await locks.peek('held'))?.awaited, { interval: 20 }).toBe(true)
        await server.kill()

        const impatient = other.acquire('held', { wait: 500 })
        await expectUnavailable(locks.acquire('k'), 2_500)
        await expectUnavailable(locks.peek('held'), 2_500)
        await expectUnavailable(impatient, 2_500)
        expect(await Promise.all(atDeadlines)).toEqual([['expired'], ['expired']])
        expect(held.isHeld()).toBe(false)
        await expect(held.extend('1s')).rejects.toMatchObject({ code: 'LEASE_LOST' })
        const before = performance.now()
        await held.release()
        expect(performance.now() - before).toBeLessThan(2_500)

        await server.start()
        const successor = (await waiting)!
        expect(successor.fence).toBeGreaterThan(held.fence)
        expect(successor.isHeld()).toBe(true)
        // A client may take its time to connect again; until then it is honest.
        const fenceSeen = () => locks.peek('held').then((record) => record?.fence ?? 'free', codeOf)
        await expect.poll(fenceSeen, { timeout: 15_000, interval: 50 }).not.toBe('STORE_UNAVAILABLE')
        expect(await fenceSeen()).toBe(successor.fence)
        expect(await locks.acquire('held')).toBe(null)
        expect(losses.map(({ key }) => key).toSorted()).toEqual(['held', 'idle'])
        expect(await successor.release()).toBe('released')
      })
    })
  })
}

describe.skipIf(!(await isAvailable('redis')))('redis that forgets everything', () => {
  test.each(['ioredis', 'node-redis'] as const)(
    'a lease that the store has forgotten is lost at its next renewal, and never made again (M30, N21; %s)',
    async (client) => {
      await using server = await startRedis()
      const locks = await openService(
        { client, url: server.url },
        { ttl: 3_000, heartbeat: 100, requestTimeout },
      )
      const lease = (await locks.acquire('k'))!
      await server.kill()
      await server.start()
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
      expect(lease.lossReason).toBe('gone')
      expect(await locks.peek('k')).toBe(null)
      expect(await lease.release()).toBe('already-lost')
      expect((await locks.acquire('k'))!.fence).toBeGreaterThan(lease.fence)
    },
  )
})

describe.skipIf(!(await isAvailable('postgres')))('postgres that crashes', () => {
  test.each(['pg', 'postgres.js'] as const)(
    'a lease outlives a crash of the server, with all the time that was confirmed (%s)',
    async (client) => {
      await using server = await startPostgres()
      const losses = recordLosses()
      const locks = await openService(
        { client, url: server.url },
        { ttl: 30_000, heartbeat: 100, requestTimeout },
      )
      const lease = (await locks.acquire('k', { ttl: 10_000 }))!
      await lease.extend(30_000)
      await server.kill('SIGQUIT')
      const trusted = lease.remainingMs
      expect(trusted).toBeGreaterThan(25_000)
      await server.start()
      const after = lease.remainingMs
      // It is renewed again by itself.
      await expect.poll(() => lease.remainingMs, { timeout: 10_000 }).toBeGreaterThan(after)
      const record = (await locks.peek('k'))!
      expect(record).toMatchObject({ fence: lease.fence })
      expect(record.remainingMs).toBeGreaterThan(lease.remainingMs)
      expect(losses).toEqual([])
      expect(await lease.release()).toBe('released')
    },
  )
})
