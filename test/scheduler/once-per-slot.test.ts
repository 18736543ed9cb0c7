import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

describe('a slot is run once for the whole fleet', () => {
  it('whichever node claims it first, although all have one host name and one pid (M21)', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node(), fleet.node()]
    for (const node of nodes) node.runs('tick', { every: '1s' }, () => fleet.time.sleep(5))
    await fleet.start(...nodes)
    await fleet.advance(10_500)
    expect(fleet.slotsRun).toEqual(range(1, 10))
    expect(await fleet.history('tick')).toEqual(range(1, 10).map((slot) => `${slot}/1 succeeded`))
  })

  it('although one node is 300 ms late and the job takes 5 ms (N46, M1)', async () => {
    const fleet = new Fleet()
    const [prompt, late] = [fleet.node(), fleet.node({ timersLateMs: 300 })]
    for (const node of [prompt, late]) node.runs('tick', { cron: '* * * * * *' }, () => fleet.time.sleep(5))
    await fleet.start(prompt, late)
    await fleet.advance(20_900)
    expect(fleet.slotsRun).toEqual(range(1, 20))
    expect(new Set(fleet.notes.map(({ node }) => node))).toEqual(new Set(['n1']))
    const told = fleet.slotEvents.filter(({ outcome }) => outcome === 'decided')
    expect(told.map(({ slot }) => fleet.seconds(slot))).toEqual(range(1, 20))
  })

  it('although the late node is the only one for a while, and the other one comes later', async () => {
    const fleet = new Fleet()
    const late = fleet.node({ timersLateMs: 300 })
    late.runs('tick', { every: '1s' }, () => fleet.time.sleep(5))
    await fleet.start(late)
    await fleet.advance(5_800)
    const prompt = fleet.node()
    prompt.runs('tick', { every: '1s' }, () => fleet.time.sleep(5))
    await fleet.start(prompt)
    await fleet.advance(5_000)
    expect(fleet.slotsRun).toEqual(range(1, 10))
  })

  it('although intervals begin at different moments on each node (M2)', async () => {
    const fleet = new Fleet()
    await fleet.advance(7_000)
    for (const pauseMs of [20_000, 13_000, 0]) {
      const node = fleet.node()
      node.runs('poll', { every: '60s' }, () => fleet.time.sleep(5))
      await fleet.start(node)
      await fleet.advance(pauseMs)
    }
    await fleet.advanceTo('2026-01-01T00:10:30Z')
    expect(fleet.slotsRun).toEqual(range(1, 10).map((minute) => minute * 60))
  })

  it('although wall clocks are wrong by hours, and one is put forward meanwhile (N24)', async () => {
    const fleet = new Fleet()
    const hour = 3_600_000
    const nodes = [hour, -hour, 0].map((wallOffsetMs) => fleet.node({ wallOffsetMs }))
    for (const node of nodes) node.runs('tick', { cron: '*/5 * * * * *' }, () => fleet.time.sleep(5))
    await fleet.start(...nodes)
    await fleet.advance(61_000)
    nodes[0]?.clock.stepWall(11_000)
    await fleet.advance(60_000)
    expect(fleet.slotsRun).toEqual(range(1, 24).map((nth) => nth * 5))
    for (const { slot, at } of fleet.notes) expect(at - slot).toBeLessThan(50)
  })

  it('although answers take long on the way, and by a different time on each node', async () => {
    const fleet = new Fleet()
    const nodes = [0, 40, 170].map((lagMs) => {
      const node = fleet.node()
      node.link.lagMs = lagMs
      return node
    })
    for (const node of nodes) node.runs('tick', { every: '1s' }, () => fleet.time.sleep(5))
    await fleet.start(...nodes)
    const first = Math.floor(fleet.seconds(fleet.now)) + 1
    await fleet.advance(20_000)
    expect(fleet.slotsRun).toEqual(range(first, first + 19))
  })

  it('with many tasks in one process, whose claims of one tick are one call', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    for (let i = 0; i < 50; i++) node.runs(`task ${i}`, { every: '10s' })
    await fleet.start(node)
    expect(node.link.count('register')).toBe(1)
    await fleet.advanceTo('2026-01-01T00:00:30.500Z')
    expect(fleet.notes).toHaveLength(150)
    expect(node.link.count('claim')).toBe(3)
    expect(node.link.count('complete')).toBe(3)
  })
})

describe('a slot that comes due while an earlier one runs', () => {
  it('is skipped and recorded, fleet-wide, and runs never overlap (N47)', async () => {
    const fleet = new Fleet()
    let running = 0
    let most = 0
    const nodes = [fleet.node(), fleet.node()]
    for (const node of nodes) {
      node.runs('slow', { every: '1s', overlap: 'skip' }, async () => {
        most = Math.max(most, ++running)
        await fleet.time.sleep(2_500)
        running--
      })
    }
    await fleet.start(...nodes)
    await fleet.advance(9_900)
    expect(most).toBe(1)
    expect(await fleet.history('slow')).toEqual([
      '1/1 succeeded',
      '2/0 skipped overlap',
      '3/0 skipped overlap',
      '4/1 succeeded',
      '5/0 skipped overlap',
      '6/0 skipped overlap',
      '7/1 succeeded',
      '8/0 skipped overlap',
      '9/0 skipped overlap',
    ])
  })
})

describe('the store is not bothered', () => {
  it('by an idle task: a register call and control looks, no poll for each task', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    for (let i = 0; i < 20; i++) node.runs(`yearly ${i}`, { cron: '0 0 1 6 *' })
    await fleet.start(node)
    await fleet.advance(10 * 60_000)
    expect(node.link.count('register')).toBeLessThanOrEqual(13)
    expect(node.link.count('poll')).toBe(120)
    expect(node.link.count('claim')).toBe(0)
    expect(node.link.count('inspect')).toBe(0)
  })

  it('more than once a ttl by nodes that look after a long run elsewhere', async () => {
    const fleet = new Fleet()
    const [holder, idle] = [fleet.node(), fleet.node()]
    for (const node of [holder, idle]) {
      node.runs('long', { cron: '0 * * * *', ttl: '10s' }, () => fleet.time.sleep(600_000))
    }
    await fleet.start(holder, idle)
    await fleet.advanceTo('2026-01-01T01:05:00Z')
    expect(fleet.ran).toEqual(['n1 3600/1'])
    expect(idle.link.count('claim')).toBe(1)
    expect(idle.link.count('inspect')).toBeGreaterThan(20)
    expect(idle.link.count('inspect')).toBeLessThan(50)
    expect(holder.link.count('inspect')).toBe(0)
  })
})

describe('a slot far away', () => {
  it('does not fire at once, nor make timers spin, and fires when it comes (N56, M36)', async () => {
    const fleet = new Fleet()
    const early = fleet.node()
    early.runs('yearly', { cron: '0 0 1 3 *' })
    await fleet.start(early)
    await fleet.advance(3_600_000)
    expect(fleet.notes).toEqual([])
    expect(early.link.count('claim')).toBe(0)
    // The longest is that of the log; those of tasks are a minute.
    for (const { inMs } of fleet.time.timers(early.clock)) expect(inMs).toBeLessThanOrEqual(600_000)
    await early.tasks.stop()

    await fleet.advanceTo('2026-02-28T23:00:00Z')
    await fleet.start(early)
    await fleet.advanceTo('2026-03-01T00:00:00.100Z')
    expect(fleet.notes.map(({ slot }) => new Date(slot).toISOString())).toEqual(['2026-03-01T00:00:00.000Z'])
  })

  it('of an interval beyond 2^31 ms is waited for in chunks (N56)', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('rare', { every: '300d' })
    await fleet.start(node)
    await fleet.advance(600_000)
    expect(fleet.notes).toEqual([])
    for (const { inMs } of fleet.time.timers(node.clock)) expect(inMs).toBeLessThanOrEqual(600_000)
  })
})
