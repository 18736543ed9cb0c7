import type { TaskOptions, TaskRun } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet, type FleetNode } from './fleet.ts'

interface Work {
  readonly begun: string[]
  running: number
  most: number
}

async function working(
  fleet: Fleet,
  options: TaskOptions,
  workMs: (run: TaskRun) => number,
  count = 2,
): Promise<{ nodes: FleetNode[]; work: Work }> {
  const work: Work = { begun: [], running: 0, most: 0 }
  const handler = async (run: TaskRun, node: FleetNode): Promise<void> => {
    work.begun.push(`${fleet.seconds(run.slot)}/${run.attempt} on ${node.name}`)
    work.most = Math.max(work.most, ++work.running)
    const aborted = new Promise<void>((_, reject) => {
      run.signal.addEventListener('abort', () => reject(run.signal.reason as Error))
    })
    try {
      await Promise.race([fleet.time.sleep(workMs(run)), aborted])
    } finally {
      work.running--
    }
  }
  const nodes = Array.from({ length: count }, () => fleet.node())
  for (const node of nodes) node.runs('task', options, handler)
  await fleet.start(...nodes)
  return { nodes, work }
}

const slotsOf = (work: Work): number[] => work.begun.map((line) => Number(line.split('/')[0]))

describe("with overlap: 'allow'", () => {
  it('runs of one task overlap, each slot once, and each has its entry', async () => {
    const fleet = new Fleet()
    const { work } = await working(fleet, { every: '10s', overlap: 'allow' }, () => 35_000, 3)
    await fleet.advance(104_000)
    expect(work.most).toBe(4)
    expect(slotsOf(work)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    const history = await fleet.history('task')
    expect(history.slice(0, 6)).toEqual([10, 20, 30, 40, 50, 60].map((slot) => `${slot}/1 succeeded`))
    expect(history.slice(-4)).toEqual([70, 80, 90, 100].map((slot) => `${slot}/1 running`))
    const [entry] = await fleet.entries('task')
    expect(entry?.holder?.pid).toBe(process.pid)
  })

  it('no more than maxOverlap at a time: further slots are missed, overlap', async () => {
    const fleet = new Fleet()
    const options = { every: '10s', overlap: 'allow', maxOverlap: 2 } as const
    const { work } = await working(fleet, options, () => 25_000)
    await fleet.advance(64_000)
    expect(work.most).toBe(2)
    expect(await fleet.history('task')).toEqual([
      '10/1 succeeded',
      '20/1 succeeded',
      '30/0 missed overlap',
      '40/1 running',
      '50/1 running',
      '60/0 missed overlap',
    ])
  })

  it('fences of runs of one slot grow, and so do those of one lane', async () => {
    const fleet = new Fleet()
    await working(fleet, { every: '10s', overlap: 'allow', maxOverlap: 2 }, () => 5)
    await fleet.advance(100_000)
    const fences = fleet.notes.map(({ fence }) => fence)
    expect(fences).toEqual(fences.toSorted((a, b) => a - b))
  })

  it("a node that dies loses its runs alone, with onCrash: 'skip'", async () => {
    const fleet = new Fleet()
    const options = { every: '10s', overlap: 'allow', ttl: '6s' } as const
    const { nodes, work } = await working(fleet, options, () => 45_000)
    await fleet.advance(31_000)
    const dead = nodes.find(({ name }) => work.begun[1]?.endsWith(name))
    dead?.kill()
    await fleet.advance(60_000)
    const lost = work.begun.slice(0, 3).filter((line) => line.endsWith(dead?.name ?? ''))
    expect(lost.length).toBeGreaterThan(0)
    const history = await fleet.history('task')
    for (const [index, slot] of [10, 20, 30].entries()) {
      const isLost = work.begun[index]?.endsWith(dead?.name ?? '') === true
      expect(history).toContain(`${slot}/1 ${isLost ? 'lost' : 'succeeded'}`)
    }
    expect(new Set(slotsOf(work)).size).toBe(work.begun.length)
  })

  it("and a live node runs each of them again, with onCrash: 'retry'", async () => {
    const fleet = new Fleet()
    const options = { every: '1m', overlap: 'allow', ttl: '6s', onCrash: 'retry' } as const
    const { nodes, work } = await working(fleet, options, ({ attempt }) => (attempt === 1 ? 300_000 : 100))
    await fleet.advance(185_000)
    expect(work.begun).toHaveLength(3)
    const dead = nodes.find(({ name }) => work.begun[2]?.endsWith(name))
    const lost = work.begun
      .filter((line) => line.endsWith(dead?.name ?? ''))
      .map((line) => line.split('/')[0])
    dead?.kill()
    await fleet.advance(50_000)
    const history = await fleet.history('task')
    for (const slot of lost) {
      expect(history).toContain(`${slot}/1 lost`)
      expect(history).toContain(`${slot}/2 succeeded`)
    }
  })

  it('a node that dies while it hands a slot over costs nothing: another hands it over', async () => {
    for (const verb of ['claim', 'complete'] as const) {
      const fleet = new Fleet()
      const options = { every: '1m', overlap: 'allow', ttl: '6s' } as const
      const { nodes, work } = await working(fleet, options, () => 10, 1)
      const [first] = nodes
      // The claim of the lane, or the completion of the hand-over.
      if (verb === 'claim') first!.link.plan('claim', (pass) => pass())
      first!.link.plan(verb, () => {
        first!.kill()
        return new Promise(() => {})
      })
      const second = fleet.node()
      await fleet.advance(59_000)
      second.runs(
        'task',
        options,
        ({ slot, attempt }) => void work.begun.push(`${fleet.seconds(slot)}/${attempt} on second`),
      )
      await fleet.advance(2_000)
      await fleet.start(second)
      await fleet.advance(40_000)
      expect(
        work.begun.filter((line) => line.startsWith('60/1')),
        verb,
      ).toHaveLength(1)
      expect(await fleet.history('task'), verb).toEqual([`60/1 ${verb === 'claim' ? 'succeeded' : 'lost'}`])
      await fleet.end()
    }
  })

  it('an answer that was lost runs nothing twice', async () => {
    const fleet = new Fleet()
    const options = { every: '10s', overlap: 'allow', ttl: '6s' } as const
    const { nodes, work } = await working(fleet, options, () => 15_000, 2)
    for (const { link } of nodes) {
      for (let nth = 0; nth < 60; nth++) link.plan('claim', nth % 3 === 1 ? 'lose-answer' : (pass) => pass())
    }
    await fleet.advance(205_000)
    const slots = slotsOf(work)
    expect(new Set(slots).size).toBe(slots.length)
    for (const slot of slots.slice(0, 15)) expect(slots).toContain(slot)
  })

  it('stops when its node stops: what runs ends, and nothing more is begun', async () => {
    const fleet = new Fleet()
    const { nodes, work } = await working(fleet, { every: '10s', overlap: 'allow' }, () => 25_000, 1)
    await fleet.advance(21_000)
    const stopped = nodes[0]!.tasks.stop({ drain: '1m' })
    await fleet.advance(30_000)
    await stopped
    expect(slotsOf(work)).toEqual([10, 20])
    expect(await fleet.history('task')).toEqual(['10/1 succeeded', '20/1 succeeded'])
  })

  it('one of several is cancelled by its fence, or all of them; the oldest is shown', async () => {
    const fleet = new Fleet()
    const options = { every: '10s', overlap: 'allow', ttl: '3s' } as const
    await working(fleet, options, () => 600_000)
    const operator = fleet.node()
    await fleet.advance(31_000)
    const summaries = await fleet.time.until(operator.tasks.list())
    expect(summaries).toHaveLength(1)
    const status = await fleet.time.until(operator.tasks.status('task'))
    expect(fleet.seconds(status?.running?.slot ?? 0)).toBe(10)
    const { fence } = status?.running ?? {}
    expect(await fleet.time.until(operator.tasks.cancel('task', { fence }))).toBe('applied')
    await fleet.advance(3_000)
    expect(await fleet.history('task')).toEqual(['10/1 abandoned cancelled', '20/1 running', '30/1 running'])
    expect(await fleet.time.until(operator.tasks.cancel('task'))).toBe('applied')
    await fleet.advance(3_000)
    expect((await fleet.history('task')).slice(0, 3)).toEqual([
      '10/1 abandoned cancelled',
      '20/1 abandoned cancelled',
      '30/1 abandoned cancelled',
    ])
  })

  it('is paused, and triggered, like any task', async () => {
    const fleet = new Fleet()
    const { nodes } = await working(fleet, { every: '10s', overlap: 'allow' }, () => 5)
    await fleet.advance(15_000)
    await fleet.time.until(nodes[0]!.tasks.pause('task'))
    await fleet.advance(10_000)
    await fleet.time.until(nodes[0]!.tasks.trigger('task', { by: 'ada' }))
    await fleet.advance(1_000)
    await fleet.time.until(nodes[0]!.tasks.resume('task'))
    await fleet.advance(8_000)
    expect(await fleet.history('task')).toEqual([
      '10/1 succeeded',
      '20/0 skipped paused',
      '25/1 succeeded manual',
      '30/1 succeeded',
    ])
  })
})
