// A holder that is killed frees its key by dying, whatever its connections do (G4, N32, N64, M3, M35, M40).
import { expect, test } from 'vitest'
import type { StoreAddress } from '../programs/open-locks.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { freshNamespace } from '../support/stores.ts'
import { addressOf, describeEach, everyClient, openService } from './subjects.ts'
import { Worker } from './worker-process.ts'

const ttl = 600
/** What a waiter may take to notice: a round trip and the turns of a busy machine. */
const slack = 500

await describeEach(everyClient, (client) => {
  test('a killed holder’s key is free within one ttl, under a greater fence (G4, N32, N64, M3, M35)', async () => {
    const address = await addressOf(client)
    await expectToBeFreeWithinTtl(address, address, () => {})
  })
})

await describeEach(['pg', 'ioredis'], (client) => {
  test('a connection that outlives its killed holder holds nothing (M40)', async () => {
    const address = await addressOf(client)
    await using proxy = await startFaultProxy(address.url)
    await expectToBeFreeWithinTtl({ client, url: proxy.url }, address, async () => {
      await proxy.set('blackhole')
      return () => expect(proxy.connections).toBeGreaterThan(0)
    })
  })
})

async function expectToBeFreeWithinTtl(
  holderAddress: StoreAddress,
  address: StoreAddress,
  beforeKill: () => Promise<() => void> | void,
): Promise<void> {
  const namespace = freshNamespace()
  const holder = await Worker.start({ address: holderAddress, service: { namespace, ttl } })
  const locks = await openService(address, { namespace, ttl })
  const fence = await holder.call('acquire', 'k', { wait: 10_000 })
  // It has renewed at least once: what counts is the last renewal, not the grant.
  const granted = await locks.peek('k')
  await expect
    .poll(async () => (await locks.peek('k'))?.expiresAt, { interval: 20 })
    .not.toEqual(granted?.expiresAt)

  const waiting = locks.acquire('k', { wait: 10_000 })
  waiting.catch(() => {})
  await expect.poll(async () => (await locks.peek('k'))?.awaited, { interval: 20 }).toBe(true)
  const afterKill = await beforeKill()
  const killedAt = await holder.kill()
  const left = await locks.peek('k')
  expect(left).toMatchObject({ fence })
  expect(left!.expiresAt.getTime()).toBeLessThanOrEqual(killedAt + ttl + 50)

  const lease = await waiting
  expect(Date.now()).toBeGreaterThanOrEqual(left!.expiresAt.getTime())
  expect(Date.now()).toBeLessThanOrEqual(killedAt + ttl + slack)
  expect(lease!.fence).toBeGreaterThan(fence!)
  afterKill?.()
}
