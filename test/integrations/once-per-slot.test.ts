import { beforeAll, describe, expect, it } from 'vitest'
import { startProgram } from '../support/programs.ts'
import { freshNamespace, isAvailable, redisUrl } from '../support/stores.ts'
import { runsPerSlot } from './second-by-second.ts'

/** Two processes, one of them 300 ms late, and a job of 5 ms each second. */
const lateMs = [0, 300]
const slots = 8
const start = (args: readonly string[]) => startProgram('second-by-second', args)

describe
  .skipIf(!(await isAvailable('redis')))
  .concurrent('a job of 5 ms, with one process 300 ms late', () => {
    let url: string

    beforeAll(async () => {
      url = await redisUrl()
    })

    const run = (way: Parameters<typeof runsPerSlot>[0]['way']): Promise<number[]> =>
      runsPerSlot({ start, way, url, namespace: freshNamespace(), lateMs, slots })

    it.each([
      'node-cron',
      'node-cron, coordinated',
      'cron',
      'croner',
      'node-schedule',
      'an interval',
    ] as const)('fired by %s runs once a slot (N46, M1)', async (way) => {
      const runs = await run(way)
      expect(Math.max(...runs)).toBe(1)
      // A machine that is busy for a second has the schedulers themselves leave a slot out.
      expect(runs.filter((times) => times === 1).length).toBeGreaterThanOrEqual(slots - 2)
    })

    it.each(['node-cron, a lock per fire', 'node-cron, alone'] as const)(
      'fired by %s runs twice a slot: so the others were put to the test',
      async (way) => {
        const runs = await run(way)
        expect(runs.filter((times) => times === 2).length).toBeGreaterThanOrEqual(slots - 2)
      },
    )
  })
