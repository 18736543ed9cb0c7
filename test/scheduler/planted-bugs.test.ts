import { describe, expect, it, vi } from 'vitest'
import { Completion } from '../../src/scheduler/completion.ts'
import { cronSchedule } from '../../src/scheduler/cron-schedule.ts'
import type * as lapses from '../../src/scheduler/lapse-watch.ts'
import { LapseWatch } from '../../src/scheduler/lapse-watch.ts'
import { LocalTime } from '../../src/scheduler/local-time.ts'
import type * as policies from '../../src/scheduler/policies.ts'
import { Run } from '../../src/scheduler/run.ts'
import { StoreTime } from '../../src/scheduler/store-time.ts'
import { Task } from '../../src/scheduler/task.ts'
import { Fleet } from './fleet.ts'

/*
 * Ways to get a scheduler wrong, each planted into ours, and what notices it. Kept as a collection: a test that cannot
 * fail shows nothing.
 */

type PlanSlot = typeof policies.planSlot

const planted = vi.hoisted((): { planSlot: PlanSlot | null; watchesApart: boolean } => ({
  planSlot: null,
  watchesApart: false,
}))
vi.mock('../../src/scheduler/policies.ts', async (original) => {
  const real = await original<typeof policies>()
  const planSlot: PlanSlot = (...args) => (planted.planSlot ?? real.planSlot)(...args)
  return { ...real, planSlot }
})
vi.mock('../../src/scheduler/lapse-watch.ts', async (original) => {
  const real = await original<typeof lapses>()
  class PlantedLapseWatch extends real.LapseWatch {
    readonly #args: ConstructorParameters<typeof real.LapseWatch>
    readonly #apart = new Map<lapses.LapseWatched, lapses.LapseWatch>()

    constructor(...args: ConstructorParameters<typeof real.LapseWatch>) {
      super(...args)
      this.#args = args
    }

    override watch(task: lapses.LapseWatched): void {
      if (!planted.watchesApart) return super.watch(task)
      const own = this.#apart.get(task) ?? new real.LapseWatch(...this.#args)
      this.#apart.set(task, own)
      own.watch(task)
    }

    override close(): void {
      super.close()
      for (const own of this.#apart.values()) own.close()
    }
  }
  return { ...real, LapseWatch: PlantedLapseWatch }
})

interface PlantedBug {
  readonly what: string
  plant(fleet: Fleet): void
  /** Passes on a sound scheduler, and throws on one with the bug. */
  notices(fleet: Fleet): Promise<void>
}

const hour = 3_600_000
const never = (): Promise<never> => new Promise(() => {})

const bugs: readonly PlantedBug[] = [
  {
    what: 'slots are counted on the wall clock of the process',
    plant: (fleet) => {
      vi.spyOn(StoreTime.prototype, 'now').mockImplementation(() => fleet.now + hour)
    },
    async notices(fleet) {
      const node = fleet.node({ wallOffsetMs: hour })
      node.runs('task', { every: '10s' })
      await fleet.start(node)
      await fleet.advance(20_100)
      expect(fleet.slotsRun).toEqual([10, 20])
    },
  },
  {
    what: 'a lapsed run is found by the next slot only',
    plant: () => {
      vi.spyOn(LapseWatch.prototype, 'watch').mockImplementation(() => {})
    },
    async notices(fleet) {
      const [first, second] = [fleet.node(), fleet.node()]
      for (const node of [first, second])
        node.runs('task', { every: '1h', ttl: '10s', onCrash: 'retry' }, never)
      await fleet.start(first)
      await fleet.advanceTo('2026-01-01T01:00:01Z')
      await fleet.start(second)
      first.kill()
      await fleet.advance(30_000)
      expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
    },
  },
  {
    what: 'missed slots are made up for one after the other',
    plant: () => {
      planted.planSlot = (schedule, _policies, mark, now) => {
        const slot = schedule.next(mark)
        return slot <= now ? { kind: 'claim', slot, decide: 'run' } : { kind: 'wait', until: slot }
      }
    },
    async notices(fleet) {
      const node = fleet.node()
      node.runs('task', { every: '1s' })
      await fleet.start(node)
      await node.clock.freeze(30_000)
      await fleet.advance(100)
      expect(fleet.slotsRun).toEqual([30])
    },
  },
  {
    what: 'an outcome is reported once, like a release',
    plant: () => {
      const { record } = Completion.prototype
      vi.spyOn(Completion.prototype, 'record').mockImplementation(function once(this: Completion, request) {
        this.giveUp()
        return record.call(this, request)
      })
    },
    async notices(fleet) {
      const node = fleet.node()
      node.runs('task', { every: '1h', ttl: '10s', onCrash: 'retry' })
      await fleet.start(node)
      node.link.plan('complete', 'refuse', 2)
      await fleet.advanceTo('2026-01-01T01:01:00Z')
      expect(fleet.ran).toEqual(['n1 3600/1'])
    },
  },
  {
    what: 'the lease of a run that was asked to stop is given up while its handler goes on',
    plant: (fleet) => {
      const session = fleet.driver.open('default')
      vi.spyOn(Run.prototype, 'stop').mockImplementation(function release(this: Run) {
        const { slot, attempt, fence } = this.grant
        const request = {
          task: 'task',
          slot,
          attempt,
          fence,
          outcome: 'abandoned',
          reason: null,
          error: null,
        } as const
        void session.tasks.complete([request], { attempt: 1, lockedRows: 'wait' })
      })
    },
    async notices(fleet) {
      const [first, second] = [fleet.node(), fleet.node()]
      for (const node of [first, second]) node.runs('task', { every: '2s', ttl: '10s' }, never)
      await fleet.start(first)
      await fleet.advance(2_100)
      await fleet.start(second)
      await fleet.time.until(first.tasks.stop({ drain: 0 }))
      await fleet.advance(5_000)
      expect(fleet.ran).toEqual(['n1 2/1'])
    },
  },
  {
    what: 'stop ends the heartbeat of what still runs',
    plant: () => {
      const { drain } = Task.prototype
      vi.spyOn(Task.prototype, 'drain').mockImplementation(function unheld(this: Task) {
        this.giveUp()
        return drain.call(this)
      })
    },
    async notices(fleet) {
      const node = fleet.node()
      let wasHeld = false
      node.runs('task', { every: '1m', ttl: '2s' }, async ({ isHeld }) => {
        await fleet.time.sleep(10_000)
        wasHeld = isHeld()
      })
      await fleet.start(node)
      await fleet.advance(61_000)
      await fleet.time.until(node.tasks.stop())
      expect(wasHeld).toBe(true)
    },
  },
  {
    what: 'nobody measures the time again after the machine was suspended',
    plant: () => {
      vi.spyOn(StoreTime.prototype, 'distrust').mockImplementation(() => {})
    },
    async notices(fleet) {
      const node = fleet.node({ controlEvery: '60s' })
      node.runs('task', { every: '40s' })
      await fleet.start(node)
      await fleet.advance(30_000)
      await node.clock.suspend(10 * 60_000)
      await fleet.advance(31_000)
      expect(fleet.slotsRun.at(0)).toBeGreaterThanOrEqual(600)
    },
  },
  {
    what: 'what the clocks skip in spring is left to croner',
    plant: () => {
      vi.spyOn(LocalTime.prototype, 'skippedAt').mockReturnValue(null)
    },
    async notices() {
      const schedule = cronSchedule('30 23 * * *', 'America/Nuuk')
      expect(new Date(schedule.next(Date.parse('2026-03-28T12:00Z')))).toEqual(new Date('2026-03-29T01:00Z'))
    },
  },
  {
    what: 'each run elsewhere is looked after by a timer and a question of its own',
    plant: () => {
      planted.watchesApart = true
    },
    async notices(fleet) {
      const [busy, idle] = [fleet.node(), fleet.node()]
      for (const node of [busy, idle]) {
        for (let index = 0; index < 20; index++)
          node.runs(`long ${index}`, { every: '1h', ttl: '10s' }, () => fleet.time.sleep(120_000))
      }
      await fleet.start(busy, idle)
      await fleet.advanceTo('2026-01-01T01:01:30Z')
      expect(idle.link.count('inspect')).toBeLessThan(30)
    },
  },
  {
    what: "with catchUp: 'none' a slot that is found late is missed, however little late it is",
    plant: () => {
      planted.planSlot = (schedule, _policies, mark, now) => {
        const slot = schedule.latest(now)
        if (slot <= mark) return { kind: 'wait', until: schedule.next(now) }
        return { kind: 'claim', slot, decide: now - slot > 100 ? 'miss' : 'run' }
      }
    },
    async notices(fleet) {
      expect(await slotsRunAfter(fleet, 122_000)).toEqual([120])
    },
  },
  {
    what: "catchUp: 'none' is 'latest'",
    plant: () => {
      planted.planSlot = (schedule, _policies, mark, now) => {
        const slot = schedule.latest(now)
        return slot <= mark
          ? { kind: 'wait', until: schedule.next(now) }
          : { kind: 'claim', slot, decide: 'run' }
      }
    },
    async notices(fleet) {
      expect(await slotsRunAfter(fleet, 190_000)).toEqual([])
    },
  },
  {
    what: "the store's time is measured once",
    plant: () => {
      const { note } = StoreTime.prototype
      vi.spyOn(StoreTime.prototype, 'note').mockImplementation(function once(this: StoreTime, ...args) {
        if (!this.isKnown) note.apply(this, args)
      })
    },
    async notices(fleet) {
      const node = fleet.node()
      node.runs('task', { every: '10s' })
      await fleet.start(node)
      await fleet.advance(15_000)
      fleet.time.stepStore(3_000)
      await fleet.advance(120_000)
      const last = fleet.notes.at(-1)
      expect((last?.at ?? NaN) - (last?.slot ?? NaN)).toBeLessThan(100)
    },
  },
  {
    what: 'a slot is claimed as soon as it may have come, however long answers take',
    plant: () => {
      vi.spyOn(StoreTime.prototype, 'wakeLateMs', 'get').mockReturnValue(0)
    },
    async notices(fleet) {
      const node = fleet.node()
      node.runs('task', { every: '1s' })
      // The question takes its time and the answer none, so that the store's time seems to be later than it is.
      node.link.plan('register', async (pass) => {
        await fleet.time.sleep(400)
        return pass()
      })
      await fleet.start(node)
      await fleet.advanceTo('2026-01-01T00:00:01.500Z')
      expect([fleet.slotsRun, node.link.count('claim')]).toEqual([[1], 1])
    },
  },
]

/** What a node that is down from the start, and comes so much later, runs at once of a task of every other minute. */
async function slotsRunAfter(fleet: Fleet, downMs: number): Promise<number[]> {
  const options = { every: '2m', catchUp: 'none' } as const
  const before = fleet.node()
  before.runs('task', options)
  await fleet.start(before)
  await before.tasks.stop()
  await fleet.advance(downMs)
  const after = fleet.node()
  after.runs('task', options)
  await fleet.start(after)
  await fleet.advance(1_000)
  return fleet.slotsRun
}

describe.each(bugs)('$what', ({ plant, notices }) => {
  it('is not so', async () => {
    await notices(new Fleet())
  })

  it('would be noticed', async () => {
    const fleet = new Fleet()
    plant(fleet)
    try {
      await expect(notices(fleet)).rejects.toThrow(/expected/)
    } finally {
      planted.planSlot = null
      planted.watchesApart = false
      vi.restoreAllMocks()
    }
  })
})
