// What users of other systems look for, row by row, on every real store: locks inside a framework (A), a database-backed
// mutex (B), fencing and scheduling (C). Rows of the same list are also shown in test/nestjs (A1, A2, B2, B8),
// test/examples (A4, D1, D2), test/connecting (B7) and test/scheduler/shared-locks.test.ts (C4 to C7).
import { setTimeout as sleep } from 'node:timers/promises'
import {
  InvalidOptionError,
  type Lease,
  LockService,
  onEvent,
  ScheduledTaskStore,
  StoreUnavailableError,
  TaskScheduler,
} from 'leasehold'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openLocks, type StoreAddress } from '../programs/open-locks.ts'
import { addresses } from '../scheduler/pods.ts'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { freshNamespace, isAvailable } from '../support/stores.ts'

/** A process of its own, as far as the store can tell: its own client and service. */
async function open(address: StoreAddress, namespace: string, options = {}): Promise<LockService> {
  const { locks, end } = await openLocks(address, { namespace, ...options })
  onTestFinished(end)
  return locks
}

describe.each(Object.entries(addresses))('on %s', async (name, address) => {
  const canRun = name === 'sqlite' || (await isAvailable(name as 'postgres' | 'redis'))
  const row = it.skipIf(!canRun)

  row('A3, A4: contention is skipped, or answered with null, and the caller decides', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const [one, two] = [await open(store, namespace), await open(store, namespace)]
    const lease = await one.acquire('report')
    let ran = 0
    expect(await two.acquire('report')).toBeNull()
    expect(await two.runExclusively('report', () => ran++)).toBe('skipped')
    await lease?.release()
    expect(await two.runExclusively('report', () => ran++)).toBe('ran')
    expect(ran).toBe(1)
  })

  row('A2: a named task runs under its own name as lock', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const [one, two] = [await open(store, namespace), await open(store, namespace)]
    const [first, second] = [one, two].map((locks) => new ScheduledTaskStore({ locks }))
    let release: () => void = () => {}
    const running = first!.run('digest', () => new Promise<void>((resolve) => (release = resolve)))
    await vi.waitUntil(async () => (await two.peek('digest')) !== null)
    expect(await second!.run('digest', () => {})).toBe('skipped')
    release()
    expect(await running).toBe('ran')
  })

  row('A5: a slow holder keeps its key beyond the ttl, and a dead one loses it a ttl later', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const [slow, dead, other] = [
      await open(store, namespace),
      await open(store, namespace),
      await open(store, namespace),
    ]
    const lease = await slow.acquire('slow', { ttl: '400ms' })
    // Never renewed, like that of a process that has died.
    const orphan = await dead.acquire('dead', { ttl: '400ms', heartbeat: false })
    const waited = await other.acquire('dead', { wait: '10s', waitStep: 20 })
    expect(waited?.fence).toBeGreaterThan(orphan?.fence ?? Infinity)
    await sleep(1_000)
    expect(lease?.isHeld()).toBe(true)
    expect(await other.acquire('slow')).toBeNull()
  })

  row('A6: a stale release is a no-op, and a stale renewal a loss', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const [one, two] = [await open(store, namespace), await open(store, namespace)]
    const stale = await one.acquire('key', { ttl: '300ms', heartbeat: false })
    const fresh = await two.acquire('key', { wait: '10s', waitStep: 20 })
    expect(await stale?.release()).toBe('already-lost')
    expect(stale?.isHeld()).toBe(false)
    expect(fresh?.isHeld()).toBe(true)
    expect((await one.peek('key'))?.fence).toBe(fresh?.fence)
  })

  row(
    'B1, B6: runExclusive says whether it ran, calls onLocked, and releases whatever the work does',
    async () => {
      const [store, namespace] = [await address(), freshNamespace()]
      const [one, two] = [await open(store, namespace), await open(store, namespace)]
      const options = { ttl: '30s', heartbeat: '5s', maxLifetime: '1h' } as const
      const locked: string[] = []
      const outcome = await one.runExclusive(
        'pr:42',
        async (lease: Lease) => {
          const inner = await two.runExclusive('pr:42', () => 'never', {
            ...options,
            onLocked: (key) => locked.push(key),
          })
          expect(inner).toEqual({ acquired: false })
          return lease.fence
        },
        options,
      )
      expect(outcome).toMatchObject({ acquired: true, lost: false })
      expect(locked).toEqual(['pr:42'])
      await expect(two.runExclusive('pr:42', () => Promise.reject(new Error('no')), options)).rejects.toThrow(
        'no',
      )
      expect(await one.peek('pr:42')).toBeNull()
    },
  )

  row('B3: a namespace keeps environments on one store apart', async () => {
    const store = await address()
    const [test, prod] = [await open(store, freshNamespace()), await open(store, freshNamespace())]
    expect(await test.acquire('key')).not.toBeNull()
    expect(await prod.acquire('key')).not.toBeNull()
    expect((await prod.list()).map(({ key }) => key)).toEqual(['key'])
  })

  row('B4: an abandoned record is reclaimed, a live one left alone', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const [one, two] = [await open(store, namespace), await open(store, namespace)]
    await one.acquire('abandoned', { ttl: '300ms', heartbeat: false })
    const live = await one.acquire('live', { ttl: '30s' })
    expect(await two.acquire('abandoned', { wait: '10s', waitStep: 20 })).not.toBeNull()
    expect(await two.acquire('live')).toBeNull()
    expect(live?.isHeld()).toBe(true)
  })

  it.skipIf(!canRun || name === 'sqlite')(
    'B4: held by another and a store that is away are told apart',
    async () => {
      const [store, namespace] = [await address(), freshNamespace()]
      const proxy = await startFaultProxy(store.url)
      onTestFinished(() => proxy.close())
      const held = await (await open(store, namespace)).acquire('key')
      const far = await open({ ...store, url: proxy.url }, namespace, { requestTimeout: '500ms' })
      expect(await far.acquire('key')).toBeNull()
      await proxy.set('refuse')
      await expect(far.acquire('key')).rejects.toThrow(StoreUnavailableError)
      await expect(far.acquire('free')).rejects.toThrow(StoreUnavailableError)
      expect(held?.isHeld()).toBe(true)
      await proxy.set('pass')
    },
  )

  row('B5: no lease outlives its maximum, which is told before', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    const locks = await open(store, namespace)
    const told: string[] = []
    onTestFinished(onEvent('leasehold:max-lifetime', ({ key }) => void told.push(key)))
    const lease = await locks.acquire('key', { ttl: '300ms', maxLifetime: '900ms' })
    await vi.waitUntil(() => lease?.isHeld() === false, { timeout: 10_000 })
    expect(told).toEqual(['key'])
    expect(lease?.signal.reason).toMatchObject({ reason: 'max-lifetime' })
    await vi.waitUntil(async () => (await locks.peek('key')) === null, { timeout: 10_000 })
  })

  row(
    'C1: every grant has a fence greater than the one before, and only its token renews and releases',
    async () => {
      const [store, namespace] = [await address(), freshNamespace()]
      const [one, two] = [await open(store, namespace), await open(store, namespace)]
      const fences: number[] = []
      for (let round = 0; round < 6; round++) {
        const lease = await (round % 2 === 0 ? one : two).acquire('key')
        fences.push(lease?.fence ?? 0)
        await lease?.release()
      }
      expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))
      expect(fences.every(Number.isSafeInteger)).toBe(true)
    },
  )

  row('C9: a task never runs beside itself, and not longer than it may', async () => {
    const [store, namespace] = [await address(), freshNamespace()]
    let running = 0
    let most = 0
    const schedulers = await Promise.all(
      [0, 1].map(async () => {
        const tasks = new TaskScheduler({ locks: await open(store, namespace) })
        tasks.schedule('slow', { every: '500ms', timeout: '1200ms', ttl: '900ms' }, async ({ signal }) => {
          most = Math.max(most, ++running)
          await new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve())
          })
          running--
          throw signal.reason
        })
        await tasks.start()
        return tasks
      }),
    )
    const [first] = schedulers
    const cutOff = async () => (await first!.history('slow')).filter(({ reason }) => reason === 'timeout')
    await vi.waitFor(async () => expect((await cutOff()).length).toBeGreaterThanOrEqual(2), {
      timeout: 20_000,
    })
    await Promise.all(schedulers.map((tasks) => tasks.stop({ drain: 0 })))
    expect(most).toBe(1)
    for (const { durationMs } of await cutOff()) expect(durationMs).toBeGreaterThanOrEqual(1_000)
    const skipped = (await first!.history('slow')).filter(({ reason }) => reason === 'overlap')
    expect(skipped.length).toBeGreaterThan(0)
  })
})

describe('in one process', () => {
  it('C2: instances share one table, by default, without any store', async () => {
    const namespace = freshNamespace()
    const [one, two] = [new LockService({ namespace }), new LockService({ namespace })]
    const lease = await one.acquire('key')
    expect(await two.acquire('key')).toBeNull()
    await lease?.release()
    const next = await two.acquire('key')
    expect(next?.fence).toBeGreaterThan(lease?.fence ?? Infinity)
    await Promise.all([one.close(), two.close()])
  })

  it('C8: a scheduler without a lock service fails loudly, and so does a lock of nothing', () => {
    expect(() => new TaskScheduler({} as never)).toThrow(InvalidOptionError)
    expect(() => new TaskScheduler({ locks: {} as never })).toThrow(/locks must be a LockService/)
    const tasks = new TaskScheduler({ locks: new LockService({ namespace: freshNamespace() }) })
    expect(() => tasks.schedule('books', { every: '1m', lock: undefined, lockWait: '5s' }, () => {})).toThrow(
      /lockWait goes with lock/,
    )
  })
})

describe.skipIf(!(await isAvailable('redis')))('on a Redis connection that the application has', () => {
  it('C3: it is borrowed: never connected by us, and still open when we have closed', async () => {
    const { Redis } = await import('ioredis')
    const { redisDriver } = await import('leasehold/redis')
    const { url } = await addresses.redis()
    const client = new Redis(url)
    onTestFinished(() => client.disconnect())
    const locks = new LockService({ driver: redisDriver(client), namespace: freshNamespace() })
    const lease = await locks.acquire('key')
    expect(lease).not.toBeNull()
    await locks.close()
    expect(client.status).toBe('ready')
    expect(await client.ping()).toBe('PONG')
  })
})
