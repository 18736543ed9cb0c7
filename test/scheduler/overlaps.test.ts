import type { TaskOptions } from 'leasehold'
import type { RunRecord } from 'leasehold/driver'
import { describe, expect, it } from 'vitest'
import { intervalSchedule } from '../../src/scheduler/interval-schedule.ts'
import { Overlaps, type TaskRead } from '../../src/scheduler/overlaps.ts'
import { Fleet, type FleetNode, type NodeOptions } from './fleet.ts'

const minute = 60_000

/** A run of the slot at this minute. @param endedAt null: it has not ended */
function run(
  slot: number,
  startedAt: number,
  endedAt: number | null,
  more: Partial<RunRecord> = {},
): RunRecord {
  return {
    task: 'task',
    slot: slot * minute,
    attempt: 1,
    state: endedAt === null ? 'running' : 'succeeded',
    reason: null,
    after: (slot - 1) * minute,
    gap: 'down',
    fence: startedAt * minute * 1_000,
    holder: '{"instance":"i"}',
    startedAt: startedAt * minute,
    endedAt: endedAt === null ? null : endedAt * minute,
    error: null,
    late: null,
    ...more,
  }
}

/** Every ten minutes. */
const everyTenMinutes: TaskRead = { schedule: intervalSchedule(10 * minute), jitterMs: 0, laneCount: 0 }

/** Of the slots at 20, 30, 40 and 50 minutes, which a claim at 60.5 minutes passed over, those that met a run. */
function met(runs: readonly RunRecord[], laneRuns: readonly RunRecord[] = [], more: Partial<TaskRead> = {}) {
  const by = run(60, 60.5, null)
  const overlaps = new Overlaps({ ...everyTenMinutes, ...more }, [by, ...runs], laneRuns)
  return [20, 30, 40, 50].filter((slot) =>
    overlaps.has({ slot: slot * minute, next: (slot + 10) * minute }, by),
  )
}

describe('a slot that nobody decided met an earlier run', () => {
  it('if that had not ended when the next slot came due', () => {
    expect(met([run(10, 10, 41)])).toEqual([20, 30])
  })

  it('also if that began in the millisecond in which the one before it did', () => {
    expect(met([run(11, 11, 41, { fence: 2 }), run(10, 11, 11, { fence: 1 })])).toEqual([20, 30])
  })

  it('or had ended so shortly before that nobody need have claimed it', () => {
    expect(met([run(10, 10, 39.6)])).toEqual([20, 30])
    expect(met([run(10, 10, 39.4)])).toEqual([20])
  })

  it('also if it was retried only when the slot had come due', () => {
    expect(met([run(10, 35, 45, { attempt: 2 }), run(10, 10, 12, { state: 'lost' })])).toEqual([30])
  })

  it('if it is still under way', () => {
    expect(met([run(10, 10, null)])).toEqual([20, 30, 40, 50])
  })

  it('or has lapsed since, and is still to be retried', () => {
    const lapsed = { fence: 7, at: 34 * minute }
    expect(met([run(10, 10, null, { fence: 7 })], [], { lapsed })).toEqual([20])
  })

  it('but not if it began after the slot was passed over', () => {
    const by = run(60, 60.5, 61)
    expect(
      new Overlaps(everyTenMinutes, [run(70, 70, 71), by], []).has(
        { slot: 50 * minute, next: 60 * minute },
        by,
      ),
    ).toBe(false)
  })

  it('nor for the rows of slots that did not run', () => {
    expect(met([run(10, 10, 60, { attempt: 0, state: 'skipped' })])).toEqual([])
  })

  it('with jitter until the next slot may be claimed', () => {
    const begun = run(35, 50.2, 50.4, { reason: 'manual' })
    expect(met([begun], [], { jitterMs: 0.3 * minute })).toEqual([40])
    expect(met([begun])).toEqual([])
  })

  it('in lanes if all of them were taken; a hand-over to one takes moments', () => {
    const lanes = [run(10, 10, 41, { task: 'lane 0' }), run(20, 20, 31, { task: 'lane 1' })]
    const handedOver = run(20, 20, 59, { holder: '{"instance":"i","label":"lane 1 of 1200000"}' })
    expect(met([handedOver], lanes, { laneCount: 2 })).toEqual([20])
    expect(met([], lanes, { laneCount: 3 })).toEqual([])
    expect(met([run(15, 15, 41, { reason: 'manual' })], lanes, { laneCount: 3 })).toEqual([20, 30])
    const retried = [run(20, 31, 45, { task: 'lane 1', attempt: 2 }), ...lanes]
    expect(met([], retried, { laneCount: 3 })).toEqual([])
  })
})

it('a fleet that dies in mid-run leaves slots that met the run until its lease lapsed, and then none', async () => {
  const fleet = new Fleet()
  await outage(fleet, { afterMs: 10_100, lastsMs: 3_600_000, task: { every: '10s', overlap: 'queue' } })
  await fleet.advance(100)
  const history = await fleet.history('task')
  expect(history.slice(0, 5)).toEqual([
    '10/1 lost',
    '20/0 missed overlap',
    '30/0 missed overlap',
    '40/0 missed down',
    '50/0 missed down',
  ])
  expect(new Set(history.slice(3, -1))).not.toContain('3600/0 missed overlap')
  const [lost] = (await fleet.entries('task')).filter(({ state }) => state === 'lost')
  expect(lost?.durationMs).toBe(24_000)
})

it('a slot that met nothing is too late, whatever its node believed of the run before it', async () => {
  const fleet = new Fleet()
  const options = {
    every: '10s',
    overlap: 'queue',
    catchUp: 'none',
    startDeadline: '1s',
    ttl: '24s',
  } as const
  const nodes = [fleet.node(), fleet.node()] as const
  for (const node of nodes) node.runs('task', options, () => fleet.time.sleep(3_000))
  await fleet.start(...nodes)
  await fleet.advance(11_500)
  const [runner, other] = fleet.notes[0]?.node === 'n1' ? nodes : [nodes[1], nodes[0]]
  other.clock.frozen = true
  await fleet.advance(4_000)
  runner.kill()
  await fleet.advance(11_000)
  other.clock.frozen = false
  await fleet.advance(2_000)
  expect((await fleet.history('task')).slice(0, 2)).toEqual(['10/1 succeeded', '20/0 missed late'])
})

it('a run that is lost in an outage which is longer than the log is kept is told of when the fleet is back', async () => {
  const fleet = new Fleet()
  const node = { logRetention: '1h' } as const
  await outage(fleet, { afterMs: 601_000, lastsMs: 2 * 3_600_000, task: { every: '10m' }, node })
  await fleet.advance(1_200_000)
  expect((await fleet.history('task'))[0]).toBe('600/1 lost')
})

it('a night in which a lapsed run waits for its retry, its task being paused, is told as what it was', async () => {
  const fleet = new Fleet()
  await outage(fleet, {
    afterMs: 601_000,
    lastsMs: 8 * 3_600_000,
    task: { every: '10m', onCrash: 'retry' },
    atLast: ({ tasks }) => fleet.time.until(tasks.pause('task')),
  })
  await fleet.advance(100)
  const night = (await fleet.history('task')).filter((entry) => entry.includes('missed'))
  expect(night.length).toBeGreaterThan(40)
  expect(new Set(night.map((entry) => entry.split('missed ')[1]))).toEqual(new Set(['down']))
})

interface Outage {
  /** When the only node dies, in a run that does not end. */
  readonly afterMs: number
  /** Until another node comes. */
  readonly lastsMs: number
  readonly task: TaskOptions
  readonly node?: NodeOptions
  readonly atLast?: (dying: FleetNode) => Promise<unknown>
}

/** The lease of the run that is under way then is one of 24 s. */
async function outage(fleet: Fleet, { afterMs, lastsMs, task, node = {}, atLast }: Outage): Promise<void> {
  const options = { ...task, ttl: '24s' } as const
  const dying = fleet.node(node)
  dying.runs('task', options, () => new Promise(() => {}))
  await fleet.start(dying)
  await fleet.advance(afterMs)
  await atLast?.(dying)
  dying.kill()
  await fleet.advance(lastsMs)
  const heir = fleet.node(node)
  heir.runs('task', options)
  await fleet.start(heir)
}
