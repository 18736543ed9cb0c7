// A process that has closed its service ends by itself, and what is only held keeps no process alive (G9).
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FencedFile } from '../programs/fenced-file.ts'
import type { StoreAddress } from '../programs/open-locks.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { freshNamespace } from '../support/stores.ts'
import { addressOf, describeEach, everyClient, openService, serverOf, temporaryFolder } from './subjects.ts'
import { Worker } from './worker-process.ts'

const atOnceMs = 1_000

const start = (address: StoreAddress, namespace = freshNamespace()) =>
  Worker.start({ address, service: { namespace, ttl: 30_000, requestTimeout: 300 } })

/** Leaves the worker alone with what it has open, and waits for its end. */
async function expectToEndAtOnce(worker: Worker): Promise<void> {
  await worker.call('leave')
  const before = performance.now()
  expect(await worker.ended).toBe(0)
  expect(performance.now() - before).toBeLessThan(atOnceMs)
}

await describeEach(everyClient, (client) => {
  test.each(['connect', 'application'] as const)(
    'a process that held, waited, and closed its service ends by itself (client by %s)',
    async (by) => {
      const address: StoreAddress = { ...(await addressOf(client)), by }
      const namespace = freshNamespace()
      const locks = await openService(address, { namespace })
      const other = (await locks.acquire('k'))!
      const worker = await start(address, namespace)
      await worker.call('acquire', 'left behind')
      // The push channel is open after this one.
      const waiting = worker.call('acquire', 'k', { wait: 10_000 })
      await expect.poll(async () => (await locks.peek('k'))?.awaited, { interval: 20 }).toBe(true)
      await other.release()
      expect(await waiting).toBeGreaterThan(other.fence)
      await worker.call('close')
      await expectToEndAtOnce(worker)
      expect(await locks.list()).toEqual([])
    },
  )

  test.each<Partial<StoreAddress>>([{ by: 'connect' }, { by: 'application', quiet: true }])(
    'a process lives while it waits for a key, and ends by itself when it only holds some (client by $by)',
    async (how) => {
      const address = await addressOf(client)
      const namespace = freshNamespace()
      const locks = await openService(address, { namespace })
      const other = (await locks.acquire('k'))!
      const path = join(temporaryFolder(), 'file')
      const worker = await start({ ...address, ...how }, namespace)
      await worker.call('acquire', 'held')
      await worker.call('waitAndWrite', 'k', path)
      await worker.call('leave')
      await expect.poll(async () => (await locks.peek('k'))?.awaited, { interval: 20 }).toBe(true)
      await other.release()
      await expect.poll(() => new FencedFile(path).read().value, { timeout: 10_000 }).toBe(1)
      // postgres.js cannot be told not to keep the process alive.
      if (client !== 'postgres.js') expect(await worker.ended).toBe(0)
      expect((await locks.list()).map(({ key }) => key)).toEqual(['held', 'k'])
    },
  )

  test.skipIf(serverOf(client) === null)(
    'a service whose store hangs closes within its request timeout',
    async () => {
      const address = await addressOf(client)
      await using proxy = await startFaultProxy(address.url)
      const locks = await openService({ client, url: proxy.url }, { requestTimeout: 300 })
      await locks.acquire('held')
      await proxy.set('blackhole')
      await expect(locks.acquire('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      const before = performance.now()
      await locks.close()
      expect(performance.now() - before).toBeLessThan(2 * 300)
    },
  )

  // postgres.js says goodbye and leaves the socket to the system, which waits for the server.
  test.skipIf(serverOf(client) === null || client === 'postgres.js')(
    'a process ends by itself although the store that it connected to hangs',
    async () => {
      const address = await addressOf(client)
      await using proxy = await startFaultProxy(address.url)
      const worker = await start({ client, url: proxy.url, by: 'connect' })
      await worker.call('acquire', 'held')
      await proxy.set('blackhole')
      await expect(worker.call('acquire', 'k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      await worker.call('close')
      await expectToEndAtOnce(worker)
    },
  )
})
