import type { RunHistoryEntry, TaskOptions, TaskRun } from 'leasehold'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type SeededRandom, seededRandom } from '../../src/testing/seeded-random.ts'
import { Fleet, type FleetNode } from './fleet.ts'
import type { TaskVerb } from './test-link.ts'

/** When a run believed to hold its lease. */
interface Belief {
  readonly slot: number
  readonly attempt: number
  readonly from: number
  to: number
}

const policies: readonly TaskOptions[] = [
  { every: '2s', ttl: '1s' },
  { every: '2s', ttl: '1s', onCrash: 'retry' },
  { every: '2s', ttl: '3s', onCrash: 'retry', catchUp: 'none' },
  { cron: '*/3 * * * * *', ttl: '700ms', catchUp: 'none', startDeadline: '500ms' },
]

/** Half a minute of crashes, outages, lost answers, slow links, stops and restarts; then all is well for a while. */
async function chaos(fleet: Fleet, random: SeededRandom, options: TaskOptions): Promise<readonly Belief[]> {
  const beliefs: Belief[] = []
  const work = async (run: TaskRun): Promise<void> => {
    const belief: Belief = { slot: run.slot.getTime(), attempt: run.attempt, from: fleet.now, to: fleet.now }
    beliefs.push(belief)
    const endsAt = fleet.now + random.pick([5, 50, 400, 2_500, 6_000])
    while (fleet.now < endsAt) {
      // A frozen process cannot tell when its belief ends, but its deadline does.
      if (run.isHeld()) belief.to = Math.min(fleet.now + run.remainingMs, endsAt)
      await fleet.time.sleep(Math.min(50, endsAt - fleet.now))
    }
    if (random.integer(5) === 0) throw new Error('failed')
  }
  const begin = async (): Promise<FleetNode> => {
    const node = fleet.node({ wallOffsetMs: random.integer(7_200_000) - 3_600_000, requestTimeout: 800 })
    node.runs('task', options, work)
    await fleet.start(node)
    return node
  }
  let alive = [await begin(), await begin(), await begin()]
  for (let step = 0; step < 40; step++) {
    await fleet.advance(random.integer(1_500))
    const node = random.pick(alive)
    switch (random.integer(9)) {
      case 0:
        node.kill()
        alive = [...alive.filter((other) => other !== node), await begin()]
        break
      case 1:
        node.link.isCut = true
        break
      case 2:
        for (const other of alive) other.link.isCut = false
        break
      case 3:
        node.link.plan(
          random.pick<TaskVerb>(['claim', 'complete', 'refresh', 'register']),
          'lose-answer',
          1 + random.integer(3),
        )
        break
      case 4:
        node.link.plan(random.pick<TaskVerb>(['claim', 'complete', 'refresh']), 'hang')
        break
      case 5:
        node.link.lagMs = random.pick([0, 0, 30, 200])
        break
      case 6:
        await fleet.time.until(node.tasks.stop({ drain: random.pick([0, 500, 10_000]) }))
        await fleet.start(node)
        break
      case 7:
        await node.clock.freeze(random.integer(4_000))
        break
      default:
        for (const other of alive) other.link.isCut = random.integer(2) === 0
    }
  }
  for (const { link } of alive) {
    link.isCut = false
    link.lagMs = 0
  }
  await fleet.advance(30_000)
  return beliefs
}

it.each(policies.map((options) => [JSON.stringify(options), options] as const))(
  'whatever crashes and comes back: every slot is decided once and has a reason, no two runs overlap, %s (M19)',
  async (_name, options) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 1_000_000 }), async (seed) => {
        const fleet = new Fleet()
        const beliefs = await chaos(fleet, seededRandom(seed), options)
        await check(fleet, beliefs, options)
        await fleet.end()
      }),
      { numRuns: 12 },
    )
  },
  120_000,
)

async function check(fleet: Fleet, beliefs: readonly Belief[], options: TaskOptions): Promise<void> {
  const stepS = options.every === undefined ? 3 : 2
  const entries = (await fleet.entries('task')).filter(({ state }) => state !== 'registered')
  const bySlot = new Map<number, RunHistoryEntry[]>()
  for (const entry of entries) {
    const slot = fleet.seconds(entry.slot)
    bySlot.set(slot, [...(bySlot.get(slot) ?? []), entry])
  }

  // G6: from the first slot to the last decided one, each has an entry, and each that did not run says why.
  const last = Math.max(...bySlot.keys())
  const due = Array.from({ length: last / stepS }, (_, index) => (index + 1) * stepS)
  expect([...bySlot.keys()].toSorted((a, b) => a - b)).toEqual(due)
  expect(last).toBeGreaterThan(fleet.seconds(fleet.now) - 2 * stepS - 5)
  for (const { attempt, state, reason } of entries) {
    if (attempt === 0) expect(['skipped', 'missed']).toContain(state)
    if (attempt === 0) expect(reason).toMatch(/^(overlap|down|late)$/)
  }

  // G5: a slot is begun once, or once for each attempt; and all that was begun is over, but for the last.
  const begun = fleet.notes.map(({ slot, attempt }) => `${slot}/${attempt}`)
  expect(new Set(begun).size).toBe(begun.length)
  if (options.onCrash !== 'retry') expect(fleet.notes.filter(({ attempt }) => attempt > 1)).toEqual([])
  const open = entries.filter(({ state, slot }) => state === 'running' && fleet.seconds(slot) < last - 10)
  expect(open).toEqual([])

  // A lost attempt is followed by another one, where that is wanted and allowed.
  for (const [slot, attempts] of bySlot) {
    const ended = attempts.filter(
      ({ state }) => state === 'succeeded' || state === 'failed' || state === 'abandoned',
    )
    expect(ended.length, `outcomes of ${slot}`).toBeLessThanOrEqual(1)
    const isLost = attempts.some(({ state }) => state === 'lost')
    const most = Math.max(...attempts.map(({ attempt }) => attempt))
    if (options.onCrash === 'retry' && isLost && ended.length === 0 && slot < last - 10) expect(most).toBe(3)
  }

  // G1, G2: runs of one task never believe in their leases at one time, and fences rise.
  const fences = fleet.notes.map(({ fence }) => fence)
  expect(fences).toEqual(fences.toSorted((a, b) => a - b))
  const inOrder = beliefs.toSorted((a, b) => a.from - b.from)
  for (const [index, belief] of inOrder.entries()) {
    const next = inOrder[index + 1]
    if (next !== undefined) expect(belief.to).toBeLessThanOrEqual(next.from)
  }
}
