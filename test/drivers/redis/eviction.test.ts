import { LockService } from 'leasehold'
import { redisDriver } from 'leasehold/redis'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../support/servers.ts'
import { openClient } from './clients.ts'

test('a policy that evicts what expires evicts leases first; one is lost at its next renewal and never made again (N62)', async () => {
  const server = await startRedis({ config: { 'maxmemory-policy': 'volatile-lru' } })
  onTestFinished(() => server.close())
  const opened = await openClient('ioredis 6', server.url)
  onTestFinished(() => opened.close())
  const locks = new LockService({ driver: redisDriver(opened.client), namespace: 'full' })
  onTestFinished(() => locks.close())
  const lease = (await locks.acquire('key', { heartbeat: false }))!
  let heard: unknown
  lease.signal.addEventListener('abort', () => (heard = lease.signal.reason))

  const used = Number(/used_memory:(\d+)/.exec((await opened.send('info', 'memory')) as string)?.[1])
  await opened.send('config', 'set', 'maxmemory', String(used + 2_000_000))
  const name = '{leasehold:full}:k:key'
  let written = 0
  while ((await opened.send('exists', name)) === 1) {
    const others = Array.from({ length: 50 }, () => `other-${++written}`)
    const write = (other: string) => opened.send('set', other, 'x'.repeat(20_000)).catch(() => {})
    await Promise.all(others.map(write))
  }

  await opened.send('config', 'set', 'maxmemory', '0')
  await expect(lease.extend('30s')).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'gone' })
  expect(lease.isHeld()).toBe(false)
  expect(heard).toMatchObject({ code: 'LEASE_LOST' })
  expect(await opened.send('exists', name)).toBe(0)
  const successor = (await locks.acquire('key', { heartbeat: false }))!
  expect(successor.fence).toBeGreaterThan(lease.fence)
  expect(await lease.release()).toBe('already-lost')
  expect(successor.isHeld()).toBe(true)
})
