import { type TaskOptions, TaskScheduler } from 'leasehold'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openLocks, type StoreAddress } from '../programs/open-locks.ts'
import { freshNamespace, isAvailable } from '../support/stores.ts'
import { addresses, TaskPod } from './pods.ts'

/** This process as an operator's: no handlers, no start(). */
async function operatorOf(address: StoreAddress, namespace: string): Promise<TaskScheduler> {
  const { locks, end } = await openLocks(address, { namespace })
  onTestFinished(end)
  return new TaskScheduler({ locks })
}

describe.each(Object.entries(addresses))('processes on %s', async (name, address) => {
  const canRun = name === 'sqlite' || (await isAvailable(name as 'postgres' | 'redis'))

  it.skipIf(!canRun)(
    'pause, resume, trigger and cancel from one of them take effect on a task of another',
    async () => {
      const store = await address()
      const namespace = freshNamespace()
      const pod = await TaskPod.start({
        address: store,
        namespace,
        tasks: {
          tick: { options: { every: '500ms' }, workMs: 1 },
          long: { options: { every: '300d', ttl: '3s' }, workMs: 600_000 },
        },
      })
      const operator = await operatorOf(store, namespace)
      await pod.told('done', 'tick', 2)

      expect(await operator.pause('tick', { by: 'ada' })).toBe('applied')
      const pausedAt = Date.now()
      const skipped = async () =>
        (await operator.history('tick'))
          .filter(({ reason }) => reason === 'paused')
          .map(({ slot }) => slot.getTime())
      await vi.waitFor(async () => expect((await skipped()).length).toBeGreaterThanOrEqual(3), {
        timeout: 20_000,
      })
      const during = pod.slots('begun', 'tick').filter((slot) => slot > pausedAt)
      expect(during).toEqual([])
      const count = pod.slots('done', 'tick').length
      expect(await operator.resume('tick')).toBe('applied')
      await pod.told('done', 'tick', count + 2)

      expect(await operator.trigger('long', { by: 'ada: ticket 7' })).toBe('applied')
      await pod.told('begun', 'long')
      const { running } = (await operator.status('long')) ?? {}
      expect(running?.holder.pid).not.toBe(process.pid)
      const askedAt = performance.now()
      expect(await operator.cancel('long', { fence: running?.fence, by: 'ada: enough' })).toBe('applied')
      await pod.told('stopped', 'long')
      // One heartbeat is a third of the ttl; the rest is for a busy machine.
      expect(performance.now() - askedAt).toBeLessThan(1_000 + 2_000)
      await vi.waitFor(async () => {
        const [entry] = await operator.history('long')
        expect(entry).toMatchObject({ state: 'abandoned', reason: 'cancelled', by: null })
        expect(entry?.error).toContain('ada: enough')
      })
    },
  )

  it.skipIf(!canRun)(
    'that are all down over five slots do what catchUp says, and each slot has a reason',
    async () => {
      const store = await address()
      const namespace = freshNamespace()
      const options = { every: '1s', startDeadline: '500ms', ttl: '1s' } as const
      const policies: Readonly<Record<string, TaskOptions>> = {
        none: { ...options, catchUp: 'none' },
        latest: { ...options, catchUp: 'latest' },
        all: { ...options, catchUp: 'all' },
      }
      const tasks = Object.fromEntries(
        Object.entries(policies).map(([task, policy]) => [task, { options: policy, workMs: 1 }]),
      )
      const settings = { address: store, namespace, tasks }
      const pods = await Promise.all([TaskPod.start(settings), TaskPod.start(settings)])
      await vi.waitUntil(() => pods.some((pod) => pod.slots('done', 'all').length >= 2), { timeout: 20_000 })
      for (const pod of pods) pod.kill('SIGTERM')
      await Promise.all(pods.map((pod) => pod.ended))
      const operator = await operatorOf(store, namespace)
      const decided = (await operator.status('none'))?.decided.getTime() ?? 0
      // Five slots come due, and the next pods come in the middle between two.
      await vi.waitUntil(() => Date.now() > decided + 5_800, { timeout: 20_000, interval: 20 })
      const back = await TaskPod.start(settings)
      const cameBackAt = Date.now()
      for (const task of Object.keys(policies)) {
        const isLater = (slot: number): boolean => slot > cameBackAt + 1_000
        await vi.waitUntil(() => back.slots('done', task).some(isLater), { timeout: 20_000 })
      }
      /** From the first slot after the downtime began, up to the first that ran. */
      const untilItRan = async (task: string): Promise<string[]> => {
        const entries = (await operator.history(task)).filter(({ slot }) => slot.getTime() > decided)
        const outcomes = entries
          .map(({ state, reason }) => `${state}${reason === null ? '' : ` ${reason}`}`)
          .toReversed()
        return outcomes.slice(0, outcomes.indexOf('succeeded') + 1)
      }
      expect(await untilItRan('all')).toEqual(['succeeded'])
      const runs = back.slots('begun', 'all').filter((slot) => slot > decided && slot < cameBackAt)
      expect(runs.length).toBeGreaterThanOrEqual(5)
      expect(runs).toEqual(runs.map((_, index) => decided + (index + 1) * 1_000))

      const [latest, none] = [await untilItRan('latest'), await untilItRan('none')]
      expect(latest.length).toBeGreaterThanOrEqual(5)
      expect(new Set(latest.slice(0, -1))).toEqual(new Set(['missed down']))
      // Of those that were missed the newest is looked at, and is too late or just in time.
      expect(none.length).toBeGreaterThanOrEqual(5)
      expect(new Set(none.slice(0, 4))).toEqual(new Set(['missed down']))
      for (const outcome of none.slice(4, -1)) expect(outcome).toMatch(/^missed (down|late)$/)
      for (const slot of back.slots('begun', 'none')) expect(slot).toBeGreaterThan(cameBackAt - 1_500)
    },
  )

  it.skipIf(!canRun)("overlap on different processes with overlap: 'allow', each slot once", async () => {
    const store = await address()
    const namespace = freshNamespace()
    const tasks = {
      slow: { options: { every: '500ms', overlap: 'allow', maxOverlap: 4 }, workMs: 1_200 },
    } as const
    const settings = { address: store, namespace, tasks }
    const pods = await Promise.all([
      TaskPod.start(settings),
      TaskPod.start(settings),
      TaskPod.start(settings),
    ])
    await vi.waitUntil(() => pods.flatMap((pod) => pod.slots('done', 'slow')).length >= 6, {
      timeout: 30_000,
    })
    const operator = await operatorOf(store, namespace)
    for (const pod of pods) pod.kill('SIGTERM')
    await Promise.all(pods.map((pod) => pod.ended))
    const begun = pods.flatMap((pod) => pod.slots('begun', 'slow'))
    expect(new Set(begun).size).toBe(begun.length)
    const entries = (await operator.history('slow')).filter(({ attempt }) => attempt > 0).toReversed()
    expect(new Set(entries.map(({ slot }) => slot.getTime()))).toEqual(new Set(begun))
    expect(new Set(entries.map(({ state }) => state))).toEqual(new Set(['succeeded']))
    const ends = entries.map(({ endedAt }) => endedAt?.getTime() ?? 0)
    const hasOverlapped = entries.some(
      ({ startedAt }, index) => index > 0 && startedAt.getTime() < (ends[index - 1] ?? 0),
    )
    expect(hasOverlapped).toBe(true)
  })

  it.skipIf(!canRun)(
    'end by themselves after SIGTERM, when what runs has ended under a live lease',
    async () => {
      const store = await address()
      const namespace = freshNamespace()
      const pod = await TaskPod.start({
        address: store,
        namespace,
        tasks: { slow: { options: { every: '500ms', ttl: '2s' }, workMs: 4_000 } },
      })
      const operator = await operatorOf(store, namespace)
      await pod.told('begun', 'slow')
      pod.kill('SIGTERM')
      expect(await pod.ended).toBe(0)
      expect(pod.slots('begun', 'slow')).toHaveLength(1)
      expect(pod.events.at(-1)).toMatchObject({ event: 'done', task: 'slow', isHeld: true })
      const runs = (await operator.history('slow')).filter(({ attempt }) => attempt > 0)
      expect(runs.map(({ state }) => state)).toEqual(['succeeded'])
      expect((await operator.status('slow'))?.running).toBeNull()
    },
  )
})
