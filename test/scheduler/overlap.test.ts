import { describe, expect, it } from 'vitest'
import type { TaskOptions, TaskRun } from 'leasehold'
import { Fleet, type FleetNode } from './fleet.ts'

interface Work {
  readonly begun: string[]
  most: number
}

/** Nodes whose task takes a while each time, or until it is asked to stop. */
async function working(
  fleet: Fleet,
  options: TaskOptions,
  workMs: (slot: number) => number,
  count = 2,
): Promise<{ nodes: FleetNode[]; work: Work }> {
  const work: Work = { begun: [], most: 0 }
  let running = 0
  const handler = async ({ slot, signal }: TaskRun, node: FleetNode): Promise<void> => {
    work.begun.push(`${node.name} ${fleet.seconds(slot)} at ${fleet.seconds(fleet.now)}`)
    work.most = Math.max(work.most, ++running)
    const aborted = new Promise<void>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
    try {
      await Promise.race([fleet.time.sleep(workMs(fleet.seconds(slot))), aborted])
    } finally {
      running--
    }
  }
  const nodes = Array.from({ length: count }, () => fleet.node())
  for (const node of nodes) node.runs('task', options, handler)
  await fleet.start(...nodes)
  return { nodes, work }
}

describe("with overlap: 'queue'", () => {
  it('a slot that comes due during a run begins when that has ended, at once', async () => {
    const fleet = new Fleet()
    const { work } = await working(fleet, { every: '10s', overlap: 'queue' }, (slot) =>
      slot === 10 ? 14_000 : 10,
    )
    await fleet.advance(45_000)
    expect(work.most).toBe(1)
    expect(work.begun.map((line) => line.slice(3))).toEqual(['10 at 10', '20 at 24', '30 at 30', '40 at 40'])
    expect(await fleet.history('task')).toEqual([10, 20, 30, 40].map((slot) => `${slot}/1 succeeded`))
  })

  it('of several that came due the newest runs, and the others were missed: overlap', async () => {
    const fleet = new Fleet()
    await working(fleet, { every: '10s', overlap: 'queue' }, (slot) => (slot === 10 ? 35_000 : 10))
    await fleet.advance(55_000)
    expect(await fleet.history('task')).toEqual([
      '10/1 succeeded',
      '20/0 missed overlap',
      '30/0 missed overlap',
      '40/1 succeeded',
      '50/1 succeeded',
    ])
  })

  it("it is not too late for catchUp: 'none' however long it waited", async () => {
    const fleet = new Fleet()
    const options = { every: '1h', overlap: 'queue', catchUp: 'none', startDeadline: '5s' } as const
    await working(fleet, options, (slot) => (slot === 3_600 ? 5_000_000 : 10))
    await fleet.advance(3 * 3_600_000 - 1_000)
    expect(await fleet.history('task')).toEqual(['3600/1 succeeded', '7200/1 succeeded'])
  })

  it('it waits for the share of jitter of the next one, and nothing turns round meanwhile', async () => {
    const fleet = new Fleet()
    const options = { every: '10s', overlap: 'queue', jitter: '8s' } as const
    await working(fleet, options, (slot) => (slot === 10 ? 35_000 : 10))
    await fleet.advance(59_000)
    const history = await fleet.history('task')
    expect(history.slice(0, 3)).toEqual(['10/1 succeeded', '20/0 missed overlap', '30/0 missed overlap'])
    expect(history).toContain('50/1 succeeded')
  })

  it('it is taken up by another node when the runner dies: after the lapsed run was dealt with', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', overlap: 'queue', ttl: '10s' } as const
    const { nodes, work } = await working(fleet, options, (slot) => (slot === 60 ? 1e9 : 10))
    await fleet.advance(125_000)
    const runner = nodes.find(({ name }) => work.begun[0]?.startsWith(name))
    runner?.kill()
    await fleet.advance(20_000)
    expect(work.most).toBe(2)
    expect(await fleet.history('task')).toEqual(['60/1 lost', '120/1 succeeded'])
  })

  it('what it was overtaken by is told the same by a node that has just come', async () => {
    const fleet = new Fleet()
    const { nodes } = await working(fleet, { every: '10s', overlap: 'queue' }, () => 34_000, 1)
    await fleet.advanceTo(Date.parse('2026-01-01') + 43_750)
    const late = fleet.node()
    late.runs('task', { every: '10s', overlap: 'queue' })
    // It hears of the run, and is the first to ask when that has ended.
    late.link.lagMs = 100
    void nodes[0]?.tasks.stop({ drain: Infinity })
    await fleet.start(late)
    await fleet.advance(32_000)
    expect((await fleet.history('task')).slice(0, 4)).toEqual([
      '10/1 succeeded',
      '20/0 missed overlap',
      '30/0 missed overlap',
      '40/1 succeeded',
    ])
  })

  it('the store is asked once for each slot that waits, not all the time', async () => {
    const fleet = new Fleet()
    const { nodes } = await working(fleet, { every: '10s', overlap: 'queue' }, () => 600_000)
    await fleet.advance(300_000)
    for (const { link } of nodes) expect(link.count('claim')).toBeLessThan(35)
  })
})

describe("with overlap: 'cancel'", () => {
  it('the earlier run is asked to stop, and the new slot begins when it has ended', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', overlap: 'cancel', ttl: '6s' } as const
    const { work } = await working(fleet, options, (slot) => (slot === 60 ? 1e9 : 10))
    await fleet.advance(130_000)
    expect(work.most).toBe(1)
    expect(work.begun.map((line) => Number(line.split(' at ')[1]))[1]).toBeLessThan(122.5)
    const entries = await fleet.entries('task')
    expect(await fleet.history('task')).toEqual(['60/1 abandoned cancelled', '120/1 succeeded'])
    expect(entries.find(({ state }) => state === 'abandoned')?.error).toContain("overlap: 'cancel'")
  })

  it('a run on another node hears of it within one heartbeat, whichever node claims', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', overlap: 'cancel', ttl: '6s' } as const
    const { nodes, work } = await working(fleet, options, (slot) => (slot === 60 ? 1e9 : 10), 3)
    await fleet.advance(61_000)
    const runner = nodes.find(({ name }) => work.begun[0]?.startsWith(name))
    // It claims nothing more by itself, so another node has to.
    void runner?.tasks.stop({ drain: Infinity })
    await fleet.advance(70_000)
    expect(await fleet.history('task')).toEqual(['60/1 abandoned cancelled', '120/1 succeeded'])
    expect(work.begun[1]).not.toMatch(new RegExp(`^${runner?.name} `))
  })

  it('a run that ignores it is renewed no more, and the slot begins when its lease has ended', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const other = fleet.node()
    const options = { every: '1m', overlap: 'cancel', ttl: '6s' } as const
    const begun: number[] = []
    for (const each of [node, other]) {
      each.runs('task', options, async ({ slot }) => {
        begun.push(fleet.seconds(fleet.now))
        await fleet.time.sleep(fleet.seconds(slot) === 60 ? 600_000 : 10)
      })
    }
    await fleet.start(node, other)
    await fleet.advance(140_000)
    expect(begun[1]).toBeLessThan(132)
    expect((await fleet.history('task')).slice(0, 2)).toEqual(['60/1 abandoned cancelled', '120/1 succeeded'])
    await fleet.advance(600_000)
  })

  it('a slot that is found too late asks it to stop as well', async () => {
    const fleet = new Fleet()
    const options = {
      every: '1m',
      overlap: 'cancel',
      catchUp: 'none',
      startDeadline: '200ms',
      ttl: '6s',
    } as const
    const aborted: number[] = []
    const runner = fleet.node()
    const late = fleet.node({ timersLateMs: 300 })
    const handler = ({ signal }: TaskRun): Promise<void> =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted.push(fleet.seconds(fleet.now))
          resolve()
        })
      })
    runner.runs('task', options, handler)
    await fleet.start(runner)
    await fleet.advance(61_000)
    late.runs('task', options, () => {})
    await fleet.start(late)
    // It claims nothing more by itself.
    void runner.tasks.stop({ drain: Infinity })
    await fleet.advance(70_000)
    expect(aborted).toHaveLength(1)
    expect(aborted[0]).toBeLessThan(123)
    expect((await fleet.history('task'))[1]).toBe('120/1 succeeded')
  })
})
