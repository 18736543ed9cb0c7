import { describe, expect, it } from 'vitest'
import { Fleet, type FleetNode } from './fleet.ts'

const tenMinutes = 600_000

/** Notes when the log is purged; the first calls answer so instead of what they deleted. */
function watchPurges(fleet: Fleet, node: FleetNode, answers: readonly number[] = []): number[] {
  const at: number[] = []
  for (let count = 0; count < 1_000; count++) {
    node.link.plan('purge', async (pass) => {
      at.push(fleet.now)
      const deleted = await pass()
      return answers[count] ?? deleted
    })
  }
  return at
}

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, index) => time - (times[index] ?? 0))
}

describe('the run log', () => {
  it('loses what is older than its retention, and keeps the rest, what still runs included', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ logRetention: '20m' })
    node.runs('tick', { every: '1m' })
    node.runs('long', { every: '3m' }, () => fleet.time.sleep(3 * 3_600_000))
    await fleet.start(node)
    await fleet.advanceTo('2026-01-01T02:00:30Z')
    const ticks = (await fleet.entries('tick')).map(({ slot }) => fleet.seconds(slot))
    expect(ticks[0]).toBe(7_200)
    const oldest = ticks.at(-1) ?? 0
    expect(oldest).toBeLessThanOrEqual(7_200 - 20 * 60)
    expect(oldest).toBeGreaterThanOrEqual(7_200 - 31 * 60)
    expect(ticks).toHaveLength((7_200 - oldest) / 60 + 1)
    expect((await fleet.history('long'))[0]).toBe('180/1 running')
  })

  it('is purged by one call in ten minutes at most, the first of them within ten', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ logRetention: '1m' })
    node.runs('tick', { every: '30s' })
    await fleet.start(node)
    const startedAt = fleet.now
    const at = watchPurges(fleet, node)
    await fleet.advance(6 * tenMinutes)
    expect(at.length).toBeGreaterThanOrEqual(5)
    expect(at[0]).toBeLessThanOrEqual(startedAt + tenMinutes)
    expect(Math.min(...gaps(at))).toBeGreaterThanOrEqual(tenMinutes)
  })

  it('is kept for thirty days unless told otherwise', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1h' })
    await fleet.start(node)
    await fleet.advance(tenMinutes)
    expect(node.link.requests('purge')).toEqual([{ retentionMs: 30 * 86_400_000, limit: 500 }])
  })

  it('is purged on a second later where one call was not enough, until one is', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1h' })
    await fleet.start(node)
    const at = watchPurges(fleet, node, [500, 500, 499])
    await fleet.advance(2 * tenMinutes)
    expect(gaps(at)).toEqual([1_000, 1_000, tenMinutes])
  })

  it('is no less purged for a store that was away: the error is told, and it is tried again in time', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ logRetention: '1m' })
    node.runs('tick', { every: '1h' })
    await fleet.start(node)
    node.link.plan('purge', 'refuse')
    node.link.plan('purge', 'hang')
    await fleet.advance(3 * tenMinutes)
    expect(fleet.errors.map(({ task, error }) => [task, (error as { code?: string }).code])).toEqual([
      [undefined, 'STORE_UNAVAILABLE'],
      [undefined, 'STORE_UNAVAILABLE'],
    ])
    expect(node.link.count('purge')).toBe(3)
    expect((await fleet.entries('tick')).map(({ state }) => state)).toEqual([])
  })

  it('is not purged any more after stop, nor sooner because of another start', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1h' })
    const at = watchPurges(fleet, node)
    for (let round = 0; round < 10; round++) {
      await fleet.start(node)
      await fleet.advance(tenMinutes / 3)
      await fleet.time.until(node.tasks.stop())
      const count = at.length
      await fleet.advance(tenMinutes / 6)
      expect(at).toHaveLength(count)
    }
    expect(at.length).toBeGreaterThan(2)
    expect(Math.min(...gaps(at))).toBeGreaterThanOrEqual(tenMinutes)
  })

  it('is purged by each process at a time of its own', async () => {
    const fleet = new Fleet()
    const nodes = Array.from({ length: 4 }, () => fleet.node())
    for (const node of nodes) node.runs('tick', { every: '1h' })
    const times = nodes.map((node) => watchPurges(fleet, node))
    await fleet.start(...nodes)
    await fleet.advance(tenMinutes)
    expect(times.map((at) => at.length)).toEqual([1, 1, 1, 1])
    expect(new Set(times.flat()).size).toBe(4)
  })

  it('does not hold up a service that closes while it is purged', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ requestTimeout: 2_000 })
    node.runs('tick', { every: '1h' })
    await fleet.start(node)
    node.link.plan('purge', 'hang')
    while (node.link.count('purge') === 0) await fleet.advance(1_000)
    await fleet.time.until(node.locks.close(), 2_000)
    expect(fleet.time.timers(node.clock)).toEqual([])
  })
})
