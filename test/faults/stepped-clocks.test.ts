// The clock of a server is stepped while it runs (docs/failover.md): the exception that the guarantees name.
import { type Lease, LeaseLostError } from 'leasehold'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startSteppedClock } from '../../scripts/servers/stepped-clock.mjs'
import type { ClientName } from '../programs/open-locks.ts'
import { isInstalled } from '../support/installed.ts'
import { startPostgres, startRedis } from '../support/servers.ts'
import { freshNamespace, isAvailable } from '../support/stores.ts'
import { openService } from './subjects.ts'

const hour = 3_600_000

describe.skipIf(!isInstalled('gcc') || process.platform !== 'linux').each([
  ['redis', 'ioredis', startRedis],
  ['postgres', 'pg', startPostgres],
] as const)('%s', async (store, client, start) => {
  const here = await isAvailable(store)

  test.skipIf(!here)(
    'a step forward ends leases early: the next holder has a greater fence, the first is told when it asks',
    async () => {
      const { clock, holder, other } = await openStepped(client, start)
      const first = await holder.acquire('k', { ttl: 600_000 })
      expect(await other.acquire('k')).toBe(null)
      clock.set(hour)
      const successor = await other.acquire('k', { ttl: 600_000 })
      expect(first!.isHeld()).toBe(true)
      expect(successor!.fence).toBeGreaterThan(first!.fence)
      expect(await lossOf(first!)).toBe('gone')
      expect(await first!.release()).toBe('already-lost')
      expect(successor!.isHeld()).toBe(true)
    },
  )

  test.skipIf(!here)(
    'a step back makes leases last longer and no fence fall, and the operator frees what the dead have left',
    async () => {
      const { clock, holder, other } = await openStepped(client, start)
      const first = await holder.acquire('k', { ttl: 1_000, heartbeat: false })
      clock.set(-hour)
      await new Promise<void>((resolve) => {
        if (first!.signal.aborted) resolve()
        else first!.signal.addEventListener('abort', () => resolve())
      })
      expect(await other.acquire('k')).toBe(null)
      const [info] = await other.list()
      expect(info!.remainingMs).toBeGreaterThan(hour / 2)
      await other.forceRelease('k', { fence: info!.fence, immediate: true })
      const successor = await other.acquire('k')
      expect(successor!.fence).toBeGreaterThan(first!.fence)
    },
  )
})

async function openStepped(client: ClientName, start: typeof startRedis | typeof startPostgres) {
  const clock = await startSteppedClock()
  const server = await start({ environment: clock.environment })
  onTestFinished(async () => {
    await server.close()
    clock.close()
  })
  const namespace = freshNamespace()
  const address = { client, url: server.url }
  return {
    clock,
    holder: await openService(address, { namespace }),
    other: await openService(address, { namespace }),
  }
}

async function lossOf(lease: Lease): Promise<string> {
  const error: unknown = await lease.extend(600_000).catch((reason: unknown) => reason)
  return error instanceof LeaseLostError ? error.reason : String(error)
}
