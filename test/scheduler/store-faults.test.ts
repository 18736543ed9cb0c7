import { DriverFault, StoreUnusableError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

describe('a claim whose answer was lost', () => {
  it('is asked for again under its token, and its slot is run once', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' }, () => fleet.time.sleep(5))
    await fleet.start(node)
    node.link.plan('claim', 'lose-answer', 3)
    await fleet.advance(20_500)
    expect(fleet.ran).toEqual(['n1 10/1', 'n1 20/1'])
    const requests = node.link.requests('claim')
    expect(requests).toHaveLength(5)
    expect(new Set(requests.slice(0, 4).map(({ token }) => token)).size).toBe(1)
    expect(requests[4]?.['token']).not.toBe(requests[0]?.['token'])
    // From the second try on, another connection.
    expect(node.link.calls.filter(({ verb }) => verb === 'claim').map(({ call }) => call.attempt)).toEqual([
      1, 2, 2, 2, 1,
    ])
    expect(await fleet.history('task')).toEqual(['10/1 succeeded', '20/1 succeeded'])
  })

  it('for longer than its lease is not run, but lost or retried, as after a crash', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('once', { every: '10s', ttl: '500ms' })
    node.runs('often', { every: '10s', ttl: '500ms', onCrash: 'retry' })
    await fleet.start(node)
    node.link.plan('claim', 'lose-answer')
    node.link.plan('claim', 'refuse', 5)
    await fleet.advance(18_000)
    expect(fleet.notes.map(({ task, attempt }) => [task, attempt])).toEqual([['often', 2]])
    expect(await fleet.history('once')).toEqual(['10/1 lost'])
    expect(await fleet.history('often')).toEqual(['10/1 lost', '10/2 succeeded'])
  })

  it('because the store hangs is asked for again after the request timeout', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ requestTimeout: 1_000 })
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    node.link.plan('claim', 'hang')
    await fleet.advance(11_500)
    expect(fleet.ran).toEqual(['n1 10/1'])
  })

  it('and that comes back when the slot is over asks for the newest one', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.advance(5_000)
    node.link.isCut = true
    await fleet.advance(42_000)
    node.link.isCut = false
    await fleet.advance(10_000)
    expect(await fleet.history('task')).toEqual([
      '10/0 missed down',
      '20/0 missed down',
      '30/0 missed down',
      '40/1 succeeded',
      '50/1 succeeded',
    ])
  })
})

describe('a completion whose answer was lost', () => {
  it('is repeated until the store answers; the run is renewed meanwhile and never begun again', async () => {
    const fleet = new Fleet()
    const [node, other] = [fleet.node(), fleet.node()]
    for (const one of [node, other]) {
      one.runs('task', { every: '1m', ttl: '2s', onCrash: 'retry' }, () => fleet.time.sleep(100))
    }
    await fleet.start(node)
    node.link.plan('complete', 'refuse', 6)
    node.link.plan('complete', 'lose-answer', 2)
    await fleet.advance(60_500)
    await fleet.start(other)
    await fleet.advance(30_000)
    expect(node.link.count('complete')).toBe(9)
    expect(fleet.ran).toEqual(['n1 60/1'])
    expect(await fleet.history('task')).toEqual(['60/1 succeeded'])
    expect(fleet.endEvents.map(({ outcome }) => outcome)).toEqual(['succeeded'])
  })
})

describe('a store that answers strangely', () => {
  it('(early) has the claim wait for its time', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ controlEvery: '60s' })
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    // Its clock is put back, so that what seems due is not.
    fleet.time.stepStore(-700)
    await fleet.advanceTo('2026-01-01T00:00:09.990Z')
    expect(node.link.count('claim')).toBe(1)
    expect(fleet.notes).toEqual([])
    await fleet.advance(50)
    expect(fleet.ran).toEqual(['n1 10/1'])
    expect(fleet.notes[0]?.at).toBeGreaterThanOrEqual(fleet.notes[0]?.slot ?? Infinity)
  })

  it('(busy) is asked again at once, then willing to wait for the record', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    node.link.plan('claim', async () => [{ outcome: 'busy' }], 2)
    await fleet.advance(10_050)
    expect(fleet.ran).toEqual(['n1 10/1'])
    const calls = node.link.calls.filter(({ verb }) => verb === 'claim')
    expect(calls.map(({ call }) => call.lockedRows)).toEqual(['skip', 'wait', 'wait'])
  })

  it('(failed) has the others of the batch go on, and the one tried again', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('bad', { every: '10s' })
    node.runs('good', { every: '10s' })
    await fleet.start(node)
    node.link.plan('claim', async (pass) => {
      const [, good] = (await pass()) as unknown[]
      return [{ outcome: 'failed', error: new DriverFault('bad-item', 'poison') }, good]
    })
    await fleet.advance(10_020)
    expect(fleet.notes.map(({ task }) => task)).toEqual(['good'])
    await fleet.advance(2_000)
    expect(fleet.notes.map(({ task }) => task)).toEqual(['good', 'bad'])
    expect(fleet.errors.map(({ task }) => task)).toEqual(['bad'])
  })

  it('(behind, and nothing moved) is not asked in a tight loop', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    node.link.plan(
      'claim',
      async () => [
        {
          outcome: 'behind',
          now: fleet.now,
          mark: Date.parse('2026-01-01'),
          generation: 1,
          paused: false,
          running: null,
        },
      ],
      10,
    )
    await fleet.advance(12_000)
    expect(node.link.count('claim')).toBeLessThan(8)
    await fleet.advance(30_000)
    expect(fleet.slotsRun.at(-1)).toBe(40)
  })

  it.each(['register', 'claim', 'complete', 'refresh'] as const)(
    '(nonsense, to a %s) is a fault like any other: it is asked again',
    async (verb) => {
      const fleet = new Fleet()
      const node = fleet.node()
      node.link.plan(verb, async () => [undefined])
      node.link.plan(verb, async () => null)
      node.link.plan(verb, async () => [{ outcome: 'unheard of', now: Number.NaN }])
      node.runs('task', { every: '10s', ttl: '3s' }, () => fleet.time.sleep(4_000))
      await fleet.start(node)
      await fleet.advance(25_000)
      expect(await fleet.history('task')).toEqual(['10/1 succeeded', '20/1 succeeded'])
      expect(fleet.errors.length).toBeGreaterThanOrEqual(2)
    },
  )

  it('(a grant past its own deadline) does not run on it, but asks again under the same token', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s', ttl: '1s' }, ({ assertHeld }) => assertHeld())
    await fleet.start(node)
    node.link.plan('claim', async (pass) => {
      const answer = await pass()
      await fleet.time.sleep(995)
      return answer
    })
    await fleet.advance(11_500)
    expect(fleet.ran).toEqual(['n1 10/1'])
    expect(node.link.count('claim')).toBe(2)
    expect(await fleet.history('task')).toEqual(['10/1 succeeded'])
  })

  it('(a fence that went back) does not run on it: the slot is skipped: fence', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.advance(10_500)
    const fence = fleet.notes[0]?.fence ?? 0
    node.link.plan('claim', async (pass) => {
      const [answer] = (await pass()) as object[]
      return [{ ...answer, fence }]
    })
    await fleet.advance(10_000)
    expect(fleet.ran).toEqual(['n1 10/1'])
    expect(fleet.errors.map(({ error }) => (error as { code?: string }).code)).toEqual(['FENCE_UNSAFE'])
  })
})

describe('a record that was deleted', () => {
  it('is registered again by the next claim, which grants nothing; the log says so and the task goes on', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.advance(10_500)
    forgetTasks(fleet)
    await fleet.advance(20_000)
    expect(fleet.slotsRun).toEqual([10, 30])
    expect(fleet.slotEvents.map(({ outcome }) => outcome)).toEqual(['granted', 'unregistered', 'granted'])
    const states = (await fleet.entries('task')).map(({ slot, state }) => `${fleet.seconds(slot)} ${state}`)
    expect(states).toContain('20 registered')
  })
})

describe('a store that is down at the start', () => {
  it('is tried until it is there; start resolves meanwhile, events tell, and the tasks fire then', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.link.isCut = true
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.advance(25_000)
    expect(fleet.errors.length).toBeGreaterThan(3)
    expect(fleet.notes).toEqual([])
    node.link.isCut = false
    await fleet.advance(30_000)
    expect(fleet.slotsRun.length).toBeGreaterThanOrEqual(2)
    expect(fleet.slotsRun.every((slot) => slot >= 30)).toBe(true)
  })

  it('and hangs does not hold up start for longer than the request timeout', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ requestTimeout: 1_000 })
    node.link.plan('register', 'hang')
    node.runs('task', { every: '10s' })
    const before = fleet.now
    await fleet.start(node)
    expect(fleet.now - before).toBeLessThanOrEqual(1_000)
    await fleet.advance(20_000)
    expect(fleet.slotsRun).toContain(10)
  })

  it('and can be stopped meanwhile', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.link.isCut = true
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.time.until(node.tasks.stop())
    expect(fleet.time.timers(node.clock)).toEqual([])
  })

  it('because it cannot be used has start reject, and nothing runs on', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    node.link.plan('register', () =>
      Promise.reject(new DriverFault('unusable', 'The table leasehold_task is missing.')),
    )
    await expect(fleet.start(node)).rejects.toThrow(StoreUnusableError)
    expect(fleet.time.timers(node.clock)).toEqual([])
    // And once it was set up, it starts.
    await fleet.start(node)
    await fleet.advance(10_500)
    expect(fleet.ran).toEqual(['n1 10/1'])
  })
})

describe('a store that goes away', () => {
  it('is asked by a node once for all its tasks, not once for each', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    for (let i = 0; i < 30; i++) node.runs(`task ${i}`, { every: '1s' })
    await fleet.start(node)
    await fleet.advance(1_500)
    const before = node.link.count('claim')
    node.link.isCut = true
    await fleet.advance(60_000)
    expect(node.link.count('claim') - before).toBeLessThan(60)
    node.link.isCut = false
    await fleet.advance(5_000)
    expect(new Set(fleet.notes.filter(({ at }) => fleet.seconds(at) > 61).map(({ task }) => task)).size).toBe(
      30,
    )
  })

  it('and whose clock is elsewhere when it is back is followed', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1m' })
    await fleet.start(node)
    await fleet.advance(61_000)
    fleet.time.stepStore(150_000)
    await fleet.advance(61_000)
    const late = fleet.notes.map(({ slot, at }) => at - slot)
    expect(fleet.slotsRun.length).toBeGreaterThanOrEqual(3)
    expect(Math.max(...late)).toBeLessThan(60_000)
    await fleet.advance(120_000)
    expect(fleet.notes.slice(-2).map(({ slot, at }) => at - slot < 10)).toEqual([true, true])
  })
})

/** An operator deletes everything. */
function forgetTasks(fleet: Fleet): void {
  const stores = (globalThis as Record<symbol, Map<string, Map<string, { tasks: Map<string, unknown> }>>>)[
    Symbol.for('leasehold.memory.v1')
  ]
  stores?.get(fleet.storeName)?.get('default')?.tasks.clear()
}
