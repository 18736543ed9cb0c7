// Behind a pooler that shares connections out by transaction: rows hold leases there as anywhere, and a subscription that
// hears nothing is noticed (N38, M31).
import { onEvent } from 'leasehold'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freshNamespace, freshPostgresUrl, isAvailable, pooledUrl } from '../support/stores.ts'
import { recordLosses } from './deadline-witness.ts'
import { openService } from './subjects.ts'
import { Worker } from './worker-process.ts'

describe.skipIf(!(await isAvailable('pgbouncer')))('behind pgbouncer', () => {
  let url: string
  beforeAll(async () => {
    url = await pooledUrl(await freshPostgresUrl())
  })

  describe.each(['pg', 'postgres.js'] as const)('%s', (client) => {
    const open = (options: Parameters<typeof openService>[1]) =>
      openService({ client, url, by: 'connect' }, options)

    test('leases are granted, renewed and released over whatever connection comes (M31)', async () => {
      const losses = recordLosses()
      const locks = await open({ ttl: 500 })
      const leases = await Promise.all(Array.from({ length: 50 }, (_, index) => locks.acquire(`k${index}`)))
      let refreshes = 0
      await new Promise<void>((resolve) => {
        onTestFinished(onEvent('leasehold:refresh', () => void (++refreshes === 200 && resolve())))
      })
      expect(leases.every((lease) => lease!.isHeld())).toBe(true)
      expect(await locks.acquire('k0')).toBe(null)
      for (const lease of leases) expect(await lease!.release()).toBe('released')
      expect(losses).toEqual([])
    })

    test('a client that goes away leaves no lock behind in the pooler’s connections (N38)', async () => {
      const namespace = freshNamespace()
      const other = await open({ namespace })
      const gone = await Worker.start({
        address: { client, url },
        service: { namespace, ttl: 600 },
      })
      const fence = await gone.call('acquire', 'k')
      const killedAt = await gone.kill()
      const lease = (await other.acquire('k', { wait: 10_000 }))!
      expect(lease.fence).toBeGreaterThan(fence!)
      expect(Date.now() - killedAt).toBeLessThan(600 + 1_200)
    })

    test('a waiter notices that it hears nothing, asks from time to time, and gets the key (N38, M31)', async () => {
      const namespace = freshNamespace()
      const deaf = new Promise<void>((resolve) => {
        onTestFinished(
          onEvent('leasehold:deaf', (event) => void (event.namespace === namespace && resolve())),
        )
      })
      const holder = await open({ namespace })
      const waiter = await open({ namespace, requestTimeout: 500, waitStep: 50 })
      const lease = (await holder.acquire('k', { ttl: 60_000 }))!
      const waiting = waiter.acquire('k', { wait: Infinity })
      waiting.catch(() => {})
      await deaf
      expect(await lease.release()).toBe('released')
      const before = performance.now()
      expect((await waiting)!.fence).toBeGreaterThan(lease.fence)
      expect(performance.now() - before).toBeLessThan(2_000)
    })
  })
})
