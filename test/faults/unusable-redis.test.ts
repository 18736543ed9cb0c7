// Redis servers that refuse: foreign keys, missing rights, replicas, no memory left, and memory made by throwing leases
// away (G7, N62).
import { Redis } from 'ioredis'
import { type LeaseholdError, LockService } from 'leasehold'
import { redisDriver } from 'leasehold/redis'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../support/servers.ts'
import { freshNamespace, isAvailable, redisUrl } from '../support/stores.ts'
import { recordLosses } from './deadline-witness.ts'
import { openService } from './subjects.ts'

function clientOf(url: string): Redis {
  const client = new Redis(url)
  client.on('error', () => {})
  onTestFinished(() => client.disconnect())
  return client
}

async function rejectionOf(call: () => Promise<unknown>): Promise<LeaseholdError> {
  const before = performance.now()
  const rejected = await call().then(
    () => expect.unreachable('it was answered'),
    (error: unknown) => error as LeaseholdError,
  )
  expect(performance.now() - before).toBeLessThan(2_500)
  return rejected
}

describe.skipIf(!(await isAvailable('redis')))('redis', () => {
  test('a key that holds something else fails for itself alone, however it is asked', async () => {
    const url = await redisUrl()
    const namespace = freshNamespace()
    const locks = await openService({ client: 'ioredis', url }, { namespace })
    await clientOf(url).lpush(`{leasehold:${namespace}}:k:foreign`, 'a list')
    // They travel in one batch.
    const [foreign, one, other] = await Promise.allSettled([
      locks.acquire('foreign'),
      locks.acquire('one'),
      locks.acquire('other', { wait: '5s' }),
    ])
    expect(foreign).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNUSABLE' } })
    expect(one).toMatchObject({ status: 'fulfilled', value: { key: 'one' } })
    expect(other).toMatchObject({ status: 'fulfilled', value: { key: 'other' } })
    for (const call of [() => locks.acquire('foreign', { wait: Infinity }), () => locks.peek('foreign')]) {
      const { code, message } = await rejectionOf(call)
      expect(code).toBe('STORE_UNUSABLE')
      expect(message).toMatch(/WRONGTYPE.*Delete it, or use another prefix/)
    }
    expect((await locks.list()).map(({ key }) => key)).toEqual(['one', 'other'])
  })

  test('a user without the rights is told which page lists them, and is not kept waiting', async () => {
    await using server = await startRedis()
    await clientOf(server.url).acl(
      'SETUSER',
      'reader',
      'on',
      '>pw',
      '~*',
      '+@read',
      '+info',
      '+ping',
      '+client',
    )
    const url = new URL(server.url)
    url.username = 'reader'
    url.password = 'pw'
    const locks = new LockService({ driver: redisDriver(clientOf(url.href)), requestTimeout: 500 })
    for (const call of [
      () => locks.acquire('k'),
      () => locks.acquire('k', { wait: Infinity }),
      () => locks.peek('k'),
    ]) {
      const { code, message } = await rejectionOf(call)
      expect(code).toBe('STORE_UNUSABLE')
      expect(message).toMatch(/docs\/drivers\/redis\.md/)
    }
    await locks.close()
  })

  test('a replica is no store: could not find out, with advice; and it is one when it is promoted', async () => {
    await using server = await startRedis()
    const admin = clientOf(server.url)
    await admin.replicaof('127.0.0.1', '1')
    const locks = await openService({ client: 'ioredis', url: server.url }, { requestTimeout: 500 })
    const { code, message } = await rejectionOf(() => locks.acquire('k'))
    expect(code).toBe('STORE_UNAVAILABLE')
    expect(message).toMatch(/replica.*Connect the client to the primary/)
    const waiting = locks.acquire('k', { wait: Infinity })
    await admin.replicaof('NO', 'ONE')
    const lease = (await waiting)!
    expect(lease.isHeld()).toBe(true)
    await lease.release()
  })

  test('a server without memory grants nothing, and what is held is renewed and released', async () => {
    const losses = recordLosses()
    await using server = await startRedis({ config: { 'maxmemory-policy': 'noeviction' } })
    const admin = clientOf(server.url)
    const locks = await openService({ client: 'ioredis', url: server.url }, { requestTimeout: 500 })
    const lease = (await locks.acquire('held', { ttl: 1_000 }))!
    await admin.config('SET', 'maxmemory', '1')
    const { code, message } = await rejectionOf(() => locks.acquire('k'))
    expect(code).toBe('STORE_UNAVAILABLE')
    expect(message).toMatch(/maxmemory/)
    expect(await locks.acquire('held')).toBe(null)
    await lease.extend(5_000)
    expect(lease.remainingMs).toBeGreaterThan(4_000)
    expect(await lease.release()).toBe('released')
    await admin.config('SET', 'maxmemory', '0')
    const next = (await locks.acquire('held'))!
    expect(next.fence).toBeGreaterThan(lease.fence)
    await next.release()
    expect(losses).toEqual([])
  })

  test('a lease that Redis evicted is lost at its next renewal, and the next fence is greater (N62)', async () => {
    const losses = recordLosses()
    await using server = await startRedis({ config: { 'maxmemory-policy': 'allkeys-lru' } })
    const admin = clientOf(server.url)
    const locks = await openService({ client: 'ioredis', url: server.url }, { requestTimeout: 500 })
    const lease = (await locks.acquire('k', { ttl: 20_000, heartbeat: 1_000 }))!
    const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
    // Others fill the memory, until room is made for them.
    const used = Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
    await admin.config('SET', 'maxmemory', String(used + 2_000_000))
    const isThere = () => admin.exists(`{leasehold:${locks.namespace}}:k:k`)
    for (let other = 0; (await isThere()) === 1; other++) {
      await admin.set(`other:${other}`, Buffer.alloc(200_000, 'x'))
    }
    await lost
    expect(losses).toEqual([{ key: 'k', reason: 'gone' }])
    await admin.config('SET', 'maxmemory', '0')
    const next = (await locks.acquire('k'))!
    expect(next.fence).toBeGreaterThan(lease.fence)
    await next.release()
  })
})
