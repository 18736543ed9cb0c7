// A replica takes over without the last writes: the exception that the guarantees name, in its smallest form. How often
// what follows, `npm run exceptions` measures (docs/failover.md).
import { type Lease, type LockService, StoreUnavailableError } from 'leasehold'
import { seededRandom } from 'leasehold/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startPostgresPair } from '../../torture/exceptions/postgres-pair.ts'
import { startRedisPair } from '../../torture/exceptions/redis-pair.ts'
import type { Stage, Upheaval } from '../../torture/exceptions/upheaval.ts'
import { freshNamespace, isAvailable } from '../support/stores.ts'
import { openService } from './subjects.ts'

/** The same scenes with a replica that is waited for (`safely`) and with one that is not. */
const pairs = {
  redis: (safely: boolean) =>
    startRedisPair(2, { splits: false, minReplicas: safely, sentinels: 1, downAfterMs: 2_000 }),
  postgres: (safely: boolean) => startPostgresPair(2, { splits: false, synchronous: safely }),
} as const

describe.each(['redis', 'postgres'] as const)('%s', async (store) => {
  const here = await isAvailable(store)

  test.skipIf(!here)(
    'a grant that the replica never got: two believe, the fence tells them apart, and the first is told when it asks',
    async () => {
      const { pair, holder, other } = await openPair(store, false)
      let lease: Lease | null = null
      await pair.strike(whileWithheld(async () => (lease = await holder.acquire('k', { ttl: 600_000 }))))
      const first = lease as Lease | null
      const successor = await other.acquire('k', { ttl: 600_000, wait: 20_000 })
      expect(first!.isHeld()).toBe(true)
      expect(successor!.fence).toBeGreaterThan(first!.fence)
      await expect.poll(() => outcomeOf(first!.extend(600_000)), { timeout: 20_000 }).toBe('LEASE_LOST')
      expect(first!.signal.aborted).toBe(true)
      expect(await first!.release()).toBe('already-lost')
      expect(await outcomeOf(successor!.extend(600_000))).toBe('done')
    },
  )
})

test.skipIf(!(await isAvailable('postgres')))(
  'postgres with a replica that is waited for acknowledges no grant that a failover could take back',
  async () => {
    const { pair, holder, other } = await openPair('postgres', true)
    let error: unknown
    await pair.strike(whileWithheld(async () => (error = await errorOf(holder.acquire('k')))))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect((error as StoreUnavailableError).applied).toBe('unknown')
    const lease = await other.acquire('k', { wait: 20_000 })
    expect(lease!.isHeld()).toBe(true)
  },
)

test.skipIf(!(await isAvailable('redis')))(
  'redis with min-replicas-to-write refuses to grant once no replica has answered for a while',
  async () => {
    const { pair, holder } = await openPair('redis', true)
    const struck = pair.strike(
      whileWithheld(async () => {
        for (;;) await holder.acquire(freshNamespace())
      }),
    )
    await expect(struck).rejects.toThrow(/NOREPLICAS/)
  },
)

async function openPair(
  store: keyof typeof pairs,
  safely: boolean,
): Promise<{ pair: Upheaval; holder: LockService; other: LockService }> {
  const pair = await pairs[store](safely)
  onTestFinished(() => pair.close())
  const service = { namespace: freshNamespace(), requestTimeout: 1_000 }
  const services = await Promise.all(pair.ways.map((way) => openService(way, service)))
  const [holder, other] = services as [LockService, LockService]
  // Tables are there and connections made, before anything is held back.
  for (const locks of services) await (await locks.acquire('warm-up', { wait: 10_000 }))!.release()
  return { pair, holder, other }
}

/** A stage on which something is done while the replica gets nothing. */
function whileWithheld(act: () => Promise<unknown>): Stage {
  let isDone = false
  return {
    random: seededRandom(1),
    except: () => {},
    async wait() {
      if (!isDone) await act()
      isDone = true
    },
  }
}

async function errorOf(asked: Promise<unknown>): Promise<unknown> {
  return asked.then(
    () => undefined,
    (error: unknown) => error,
  )
}

async function outcomeOf(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )
}
