import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Clock, LockService, systemClock, TaskScheduler } from 'leasehold'
import type { Driver } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { sqliteDriver } from 'leasehold/sqlite'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freshNamespace, isAvailable, postgresUrl, redisUrl } from '../support/stores.ts'
import { TestLink } from './test-link.ts'

/** Each call opens one more way to the same store, as a process would; it is closed with the test. */
const stores = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-scheduler-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return async () => sqliteDriver({ path: join(folder, 'tasks.db') })
  },
  postgres: async () => {
    const connectionString = await postgresUrl()
    return async () => {
      const pool = new pg.Pool({ connectionString, max: 3 })
      onTestFinished(() => pool.end())
      return postgresDriver(pool)
    }
  },
  redis: async () => {
    const url = await redisUrl()
    return async () => {
      const client = new Redis(url)
      onTestFinished(() => client.disconnect())
      return redisDriver(client)
    }
  },
} satisfies Record<string, () => Promise<() => Promise<Driver>>>

/** Every timer comes 300 ms late, and the wall clock is an hour off. */
const badClock: Clock = {
  ...systemClock,
  wall: () => systemClock.wall() + 3_600_000,
  setTimer: (delayMs, callback, options) => systemClock.setTimer(delayMs + 300, callback, options),
}

describe.each(Object.entries(stores))('three nodes on %s', async (name, openStore) => {
  const canRun = name === 'sqlite' || (await isAvailable(name as 'postgres' | 'redis'))

  it.skipIf(!canRun)(
    'run each slot once, take over from one that died, and leave no slot without a reason',
    async () => {
      const openDriver = await openStore()
      const namespace = freshNamespace()
      const started: string[] = []
      const finished: string[] = []

      const startNode = async (
        node: string,
        clock: Clock,
        work: (link: TestLink) => unknown,
      ): Promise<TaskScheduler> => {
        const link = new TestLink(await openDriver(), { sleep })
        const locks = new LockService({ driver: link.driver, namespace, clock })
        const tasks = new TaskScheduler({ locks })
        onTestFinished(async () => {
          link.isCut = false
          await locks.close()
        })
        tasks.schedule(
          'tick',
          { cron: '* * * * * *', onCrash: 'retry', ttl: '600ms' },
          async ({ slot, attempt }) => {
            started.push(`${slot.getTime()}/${attempt}`)
            await work(link)
            finished.push(`${node} ${slot.getTime()}/${attempt}`)
          },
        )
        await tasks.start()
        return tasks
      }

      const dead = await startNode('dead', systemClock, async (link) => {
        link.isCut = true
        await new Promise(() => {})
      })
      await vi.waitFor(() => expect(started).toHaveLength(1), { timeout: 5_000 })
      const prompt = await startNode('prompt', systemClock, () => sleep(5))
      await startNode('late', badClock, () => sleep(5))
      await vi.waitFor(() => expect(finished.length).toBeGreaterThanOrEqual(5), { timeout: 15_000 })
      const entries = (await prompt.history('tick')).filter(({ state }) => state !== 'registered')
      await dead.stop({ drain: 0 })

      expect(new Set(started).size).toBe(started.length)
      expect(started[1]).toBe(started[0]?.replace('/1', '/2'))
      const slots = [...new Set(entries.map(({ slot }) => slot.getTime()))].toSorted((a, b) => a - b)
      const [first = 0] = slots
      expect(slots).toEqual(slots.map((_, index) => first + index * 1_000))
      for (const { attempt, state, reason } of entries) {
        if (attempt === 0) expect(`${state} ${reason}`).toMatch(/^(skipped overlap|missed down)$/)
      }
      expect(entries.find(({ attempt, slot }) => attempt === 1 && slot.getTime() === first)?.state).toBe(
        'lost',
      )
      expect(entries.find(({ attempt, slot }) => attempt === 2 && slot.getTime() === first)?.state).toBe(
        'succeeded',
      )
    },
    40_000,
  )
})
