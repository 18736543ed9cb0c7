import { describe, expect, it } from 'vitest'
import type { TaskOptions } from 'leasehold'
import { Fleet, type FleetNode } from './fleet.ts'

/** A node that has run until 10.5 s, and is stopped for a while; a new one comes back. */
async function downFor(ms: number, options: TaskOptions): Promise<Fleet> {
  const fleet = new Fleet()
  const before = fleet.node()
  before.runs('task', options)
  await fleet.start(before)
  await fleet.advance(10_500)
  await before.tasks.stop()
  await fleet.advance(ms)
  const after = fleet.node()
  after.runs('task', options)
  await fleet.start(after)
  return fleet
}

describe('after a downtime of the whole fleet', () => {
  it("the newest missed slot runs once, at once, with catchUp: 'latest', and the others are missed: down (N50, M23)", async () => {
    const fleet = await downFor(5_500, { every: '1s' })
    await fleet.advance(1_000)
    expect(await fleet.history('task')).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((slot) => `${slot}/1 succeeded`),
      ...[11, 12, 13, 14, 15].map((slot) => `${slot}/0 missed down`),
      '16/1 succeeded',
      '17/1 succeeded',
    ])
  })

  it('of a day, a task of every minute runs once, and each missed slot is counted (M23)', async () => {
    const fleet = await downFor(86_400_000, { every: '1m' })
    await fleet.advance(60)
    expect(fleet.slotsRun).toEqual([86_400])
    const missed = (await fleet.entries('task')).filter(({ state }) => state === 'missed')
    expect(missed).toHaveLength(1_439)
    expect(new Set(missed.map(({ reason }) => reason))).toEqual(new Set(['down']))
  })

  it("no missed slot runs with catchUp: 'none'; the newest is missed: late (N50)", async () => {
    const fleet = await downFor(300_000, { every: '2m', catchUp: 'none', startDeadline: '30s' })
    await fleet.advance(200_000)
    expect(await fleet.history('task')).toEqual([
      '120/0 missed down',
      '240/0 missed late',
      '360/1 succeeded',
      '480/1 succeeded',
    ])
  })

  it("each of five missed slots runs, the oldest first and one after the other, with catchUp: 'all'", async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    const begun: string[] = []
    for (const node of nodes) {
      node.runs('task', { every: '10s', catchUp: 'all' }, async ({ slot }) => {
        begun.push(`begin ${fleet.seconds(slot)}`)
        await fleet.time.sleep(4_000)
        begun.push(`end ${fleet.seconds(slot)}`)
      })
    }
    await fleet.start(...nodes)
    await fleet.advance(15_000)
    for (const node of nodes) await fleet.time.until(node.tasks.stop())
    await fleet.advance(50_000)
    await fleet.start(...nodes)
    await fleet.advance(43_000)
    const slots = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    expect(begun.slice(0, 20)).toEqual(
      slots.flatMap((slot) => [`begin ${slot}`, `end ${slot}`]).slice(0, begun.length),
    )
    expect(await fleet.history('task')).toEqual(slots.map((slot) => `${slot}/1 succeeded`))
  })

  it("of more than catchUpMax missed slots the newest run with catchUp: 'all', and the others are missed: down", async () => {
    const fleet = await downFor(20_000, { every: '1s', catchUp: 'all', catchUpMax: 3 })
    await fleet.advance(700)
    expect(await fleet.history('task')).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((slot) => `${slot}/1 succeeded`),
      ...[11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27].map(
        (slot) => `${slot}/0 missed down`,
      ),
      ...[28, 29, 30, 31].map((slot) => `${slot}/1 succeeded`),
    ])
  })

  it("missed slots older than the window do not run with catchUp: 'all'", async () => {
    const fleet = await downFor(3_600_000, { every: '10m', catchUp: 'all', catchUpWindow: '25m' })
    await fleet.advance(100)
    expect(await fleet.history('task')).toEqual([
      ...[600, 1200, 1800].map((slot) => `${slot}/0 missed down`),
      ...[2400, 3000, 3600].map((slot) => `${slot}/1 succeeded`),
    ])
  })

  it("a slot within its start deadline is late, not missed: it runs with catchUp: 'none' too", async () => {
    const fleet = await downFor(120_000, { every: '2m', catchUp: 'none' })
    await fleet.advance(1)
    expect(fleet.ran).toEqual(['n2 120/1'])
  })

  it('nothing older than the catch-up window runs', async () => {
    const fleet = await downFor(3_600_000 * 3, { every: '2h', catchUp: 'latest', catchUpWindow: '30m' })
    await fleet.advance(1)
    expect(await fleet.history('task')).toEqual(['7200/0 missed late'])
  })

  it('a weekly task catches up, however often its nodes are restarted meanwhile, and keeps its slots (M22)', async () => {
    const fleet = new Fleet()
    const options = { cron: '0 6 * * 1' } as const
    for (let day = 1; day < 16; day++) {
      const node = fleet.node()
      node.runs('weekly', options)
      await fleet.start(node)
      await fleet.advance(60_000)
      await fleet.time.until(node.tasks.stop())
      await fleet.advance(86_340_000)
    }
    // 2026-01-05 and -12 are Mondays; each node was up for one minute from midnight on.
    expect(
      fleet.notes.map(({ slot, at }) => [new Date(slot).toISOString(), new Date(at).toISOString()]),
    ).toEqual([
      ['2026-01-05T06:00:00.000Z', '2026-01-06T00:00:00.000Z'],
      ['2026-01-12T06:00:00.000Z', '2026-01-13T00:00:00.000Z'],
    ])
  })

  it('a first registration never back-fills', async () => {
    const fleet = new Fleet()
    await fleet.advance(30_000)
    const node = fleet.node()
    node.runs('hourly', { every: '1h' })
    await fleet.start(node)
    await fleet.advance(60_000)
    expect(fleet.notes).toEqual([])
    expect(await fleet.history('hourly')).toEqual([])
    expect((await fleet.entries('hourly')).map(({ state }) => state)).toEqual(['registered'])
  })
})

describe('after a pause of the process', () => {
  it.each(['freeze', 'suspend'] as const)(
    '(%s) only the newest due slot runs: no burst (N57)',
    async (pause) => {
      const fleet = new Fleet()
      const node = fleet.node()
      node.runs('tick', { every: '1s' })
      await fleet.start(node)
      await fleet.advance(5_500)
      await node.clock[pause](60_000)
      await fleet.advance(60_000)
      const after = fleet.slotsRun.filter((slot) => slot > 5)
      expect(after.at(-1)).toBe(125)
      expect(new Set(after).size).toBe(after.length)
      const [first = 0, second] = after
      expect(first).toBeGreaterThanOrEqual(65)
      expect(second).toBe(first + 1)
      expect(after).toHaveLength(125 - first + 1)
      const history = await fleet.history('tick')
      expect(history).toHaveLength(125)
      expect(history.filter((entry) => entry.endsWith('missed down'))).toHaveLength(first - 6)
    },
  )

  it("a suspended machine, whose monotonic clock stood still, measures the store's time again before it claims", async () => {
    const fleet = new Fleet()
    const node = fleet.node({ controlEvery: '60s' })
    node.runs('daily', { cron: '0 1 * * *' })
    await fleet.start(node)
    await fleet.advance(600_000)
    await node.clock.suspend(6 * 3_600_000)
    await fleet.advance(61_000)
    expect(fleet.ran).toEqual(['n1 3600/1'])
    await fleet.advanceTo('2026-01-02T01:00:00.100Z')
    expect(fleet.slotsRun).toEqual([3_600, 90_000])
    expect((fleet.notes[1]?.at ?? 0) - Date.parse('2026-01-02T01:00:00Z')).toBeLessThan(50)
  })

  it('runs of a frozen process are lost; it aborts them when it goes on, and their result is late (N57)', async () => {
    const fleet = new Fleet()
    const [frozen, other] = [fleet.node(), fleet.node()]
    let seen: [boolean, boolean] | undefined
    for (const node of [frozen, other]) {
      node.runs(
        'close',
        { every: '1h', ttl: '10s', onCrash: 'retry' },
        async ({ attempt, signal, isHeld }) => {
          if (attempt > 1) return
          await fleet.time.sleep(60_000)
          seen = [signal.aborted, isHeld()]
        },
      )
    }
    await fleet.start(frozen, other)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    await frozen.clock.freeze(58_000)
    await fleet.advance(10_000)
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
    expect(seen).toEqual([true, false])
    const lost = (await fleet.entries('close')).find(({ state }) => state === 'lost')
    expect(lost?.late).toBe('succeeded')
  })
})

describe('a schedule that is edited', () => {
  async function deployed(): Promise<{ fleet: Fleet; old: FleetNode; young: FleetNode }> {
    const fleet = new Fleet()
    const [old, young] = [fleet.node(), fleet.node()]
    old.runs('task', { every: '10s' })
    young.runs('task', { every: '7s' })
    await fleet.start(old)
    await fleet.advance(15_000)
    await fleet.start(young)
    return { fleet, old, young }
  }

  it('never fires the past; what was due is missed: edited, and nodes with the old one stop firing', async () => {
    const { fleet } = await deployed()
    await fleet.advance(20_000)
    expect(fleet.ran).toEqual(['n1 10/1', 'n2 21/1', 'n2 28/1', 'n2 35/1'])
    expect(await fleet.history('task')).toEqual([
      '10/1 succeeded',
      '15/0 missed edited',
      '21/1 succeeded',
      '28/1 succeeded',
      '35/1 succeeded',
    ])
  })

  it('a restarted old node does not take it back while a new one attends, but fires again once none does', async () => {
    const { fleet, old, young } = await deployed()
    await fleet.advance(6_000)
    await fleet.time.until(old.tasks.stop())
    await fleet.start(old)
    await fleet.advance(5_000)
    await fleet.time.until(young.tasks.stop())
    await fleet.advance(300_000)
    const byOld = fleet.notes.filter(({ node, at }) => node === 'n1' && fleet.seconds(at) > 15)
    expect(byOld.length).toBeGreaterThan(3)
    expect(fleet.seconds(byOld[0]?.at ?? 0)).toBeGreaterThan(100)
    for (const { slot } of byOld) expect(fleet.seconds(slot) % 10).toBe(0)
  })
})

describe('a paused task', () => {
  async function control(fleet: Fleet, kind: 'pause' | 'resume', requestId: string): Promise<void> {
    const session = fleet.driver.open('default')
    const request = { task: 'task', kind, requestId, by: 'an operator', fence: null }
    expect(await session.tasks.control(request, { attempt: 1, lockedRows: 'wait' })).toMatchObject({
      outcome: 'applied',
    })
    await session.close()
  }

  it('has its slots skipped with that reason, and goes on after the resume', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    for (const node of nodes) node.runs('task', { every: '1s' })
    await fleet.start(...nodes)
    await fleet.advance(2_500)
    await control(fleet, 'pause', 'p1')
    await fleet.advance(3_000)
    await control(fleet, 'resume', 'r1')
    await fleet.advance(1_000)
    expect(await fleet.history('task')).toEqual([
      '1/1 succeeded',
      '2/1 succeeded',
      '3/0 skipped paused',
      '4/0 skipped paused',
      '5/0 skipped paused',
      '6/1 succeeded',
    ])
  })

  it('has its lapsed run retried after the resume, within seconds, not at the next slot', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('task', { every: '1h', onCrash: 'retry', ttl: '10s' }, () => fleet.time.sleep(5_000))
    }
    await fleet.start(first, second)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    first.kill()
    await control(fleet, 'pause', 'p1')
    await fleet.advance(600_000)
    expect(fleet.ran).toEqual(['n1 3600/1'])
    expect(second.link.count('claim')).toBeLessThan(5)
    await control(fleet, 'resume', 'r1')
    await fleet.advance(6_000)
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
  })
})
