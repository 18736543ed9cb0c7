import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const never = (): Promise<never> => new Promise(() => {})

describe('a node that dies in the middle of a run', () => {
  it("is taken over as soon as its lease lapses, as the next attempt with a greater fence, with onCrash: 'retry' (M3, N48)", async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('close', { every: '1h', onCrash: 'retry', ttl: '30s' }, () => fleet.time.sleep(20_000))
    }
    await fleet.start(first, second)
    await fleet.advanceTo('2026-01-01T01:00:15Z')
    first.kill()
    await fleet.advanceTo('2026-01-01T01:10:00Z')
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
    const [lost, retried] = fleet.notes
    expect(retried?.fence).toBeGreaterThan(lost?.fence ?? Infinity)
    // The last renewal was at 10 s, so the lease lapsed at 40 s; nobody waited for the next slot.
    expect(fleet.seconds(retried?.at ?? 0)).toBeCloseTo(3_640, 0)
    expect(await fleet.history('close')).toEqual(['3600/1 lost', '3600/2 succeeded'])
    expect(fleet.slotEvents.filter(({ outcome }) => outcome === 'takeover')).toHaveLength(1)
  })

  it("is recorded as lost when its lease lapses, with an event, with onCrash: 'skip' (M3, N49)", async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second])
      node.runs('mail', { every: '1h', ttl: '30s' }, () => fleet.time.sleep(20_000))
    await fleet.start(first, second)
    await fleet.advanceTo('2026-01-01T01:00:05Z')
    first.kill()
    await fleet.advanceTo('2026-01-01T01:00:31Z')
    expect(await fleet.history('mail')).toEqual(['3600/1 lost'])
    expect(fleet.slotEvents.filter(({ outcome }) => outcome === 'lost')).toMatchObject([
      { slot: Date.parse('2026-01-01T01:00:00Z') },
    ])
    await fleet.advanceTo('2026-01-01T02:00:01Z')
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 7200/1'])
  })

  it('does not starve the task: the next slot runs (N60, M35)', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second])
      node.runs('tick', { every: '10s', ttl: '1s' }, () => fleet.time.sleep(500))
    await fleet.start(first, second)
    await fleet.advance(10_100)
    first.kill()
    await fleet.advance(25_000)
    expect(await fleet.history('tick')).toEqual(['10/1 lost', '20/1 succeeded', '30/1 succeeded'])
  })

  it('was the only one: the next one that starts looks once, and takes over at once', async () => {
    const fleet = new Fleet()
    const first = fleet.node()
    first.runs('close', { every: '1h', onCrash: 'retry', ttl: '10s' }, never)
    await fleet.start(first)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    first.kill()
    await fleet.advanceTo('2026-01-01T01:05:00Z')
    const second = fleet.node()
    second.runs('close', { every: '1h', onCrash: 'retry', ttl: '10s' }, () => fleet.time.sleep(5))
    await fleet.start(second)
    await fleet.advance(10)
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
  })

  it('leaves a slot that was due at the takeover waiting for the retry, instead of having it skipped', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', onCrash: 'retry', ttl: '10s' } as const
    const first = fleet.node()
    first.runs('close', options, never)
    await fleet.start(first)
    await fleet.advance(61_000)
    first.kill()
    await fleet.advance(64_000)
    const second = fleet.node()
    second.runs('close', options, () => fleet.time.sleep(5_000))
    await fleet.start(second)
    await fleet.advance(4_900)
    expect(fleet.ran).toEqual(['n1 60/1', 'n2 60/2'])
    await fleet.advance(200)
    expect(fleet.ran).toEqual(['n1 60/1', 'n2 60/2', 'n2 120/1'])
  })

  it('has a retry that outlasts the next slot: those that were due meanwhile were overlapped', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', onCrash: 'retry', ttl: '10s' } as const
    const first = fleet.node()
    first.runs('close', options, never)
    await fleet.start(first)
    await fleet.advance(61_000)
    first.kill()
    await fleet.advance(64_000)
    const second = fleet.node()
    second.runs('close', options, ({ attempt }) => fleet.time.sleep(attempt > 1 ? 150_000 : 5))
    await fleet.start(second)
    await fleet.advanceTo('2026-01-01T00:05:30Z')
    expect(await fleet.history('close')).toEqual([
      '60/1 lost',
      '60/2 succeeded',
      '120/0 missed overlap',
      '180/0 skipped overlap',
      '240/0 skipped overlap',
      '300/1 succeeded',
    ])
  })

  it("has a retry that outlasts the next slots: all of them run after it, with catchUp: 'all'", async () => {
    const fleet = new Fleet()
    const options = { every: '1m', onCrash: 'retry', catchUp: 'all', ttl: '10s' } as const
    const first = fleet.node()
    first.runs('close', options, never)
    await fleet.start(first)
    await fleet.advance(61_000)
    first.kill()
    await fleet.advance(64_000)
    const second = fleet.node()
    second.runs('close', options, ({ attempt }) => fleet.time.sleep(attempt > 1 ? 150_000 : 5))
    await fleet.start(second)
    const calls = second.link.calls.length
    await fleet.advance(100_000)
    // Renewals, and a look at the time now and then: it does not go round in circles while it waits.
    expect(second.link.calls.length - calls).toBeLessThan(100)
    await fleet.advanceTo('2026-01-01T00:05:30Z')
    expect(await fleet.history('close')).toEqual([
      '60/1 lost',
      '60/2 succeeded',
      '120/1 succeeded',
      '180/1 succeeded',
      '240/1 succeeded',
      '300/1 succeeded',
    ])
  })

  it('has a retry that ends just after the next slot has come due: the one that waited for it was overlapped', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', onCrash: 'retry', ttl: '10s' } as const
    const first = fleet.node()
    first.runs('close', options, never)
    await fleet.start(first)
    await fleet.advance(61_000)
    first.kill()
    await fleet.advance(64_000)
    // Its timers are late, so that it hears of the end of the retry before it looks for the next slot.
    const second = fleet.node({ timersLateMs: 300 })
    second.runs('close', options, ({ attempt }) => fleet.time.sleep(attempt > 1 ? 55_100 : 5))
    await fleet.start(second)
    await fleet.advanceTo('2026-01-01T00:03:30Z')
    expect(await fleet.history('close')).toEqual([
      '60/1 lost',
      '60/2 succeeded',
      '120/0 missed overlap',
      '180/1 succeeded',
    ])
  })

  it('has a retry after whose end the store is away: the slot that had waited for it is missed, down', async () => {
    const fleet = new Fleet()
    const options = { every: '1m', onCrash: 'retry', ttl: '10s' } as const
    const first = fleet.node()
    first.runs('close', options, never)
    await fleet.start(first)
    await fleet.advance(61_000)
    first.kill()
    await fleet.advance(64_000)
    const second = fleet.node()
    second.runs('close', options, ({ attempt }) => fleet.time.sleep(attempt > 1 ? 5_000 : 5))
    await fleet.start(second)
    await fleet.advance(1_000)
    // For almost a minute.
    second.link.plan('claim', 'refuse', 40)
    await fleet.advanceTo('2026-01-01T00:03:30Z')
    expect(await fleet.history('close')).toEqual([
      '60/1 lost',
      '60/2 succeeded',
      '120/0 missed down',
      '180/1 succeeded',
    ])
  })

  it('is retried no more than maxAttempts times, and recorded as lost then', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node(), fleet.node()]
    for (const node of nodes) {
      node.runs('fatal', { every: '1h', onCrash: 'retry', maxAttempts: 2, ttl: '10s' }, (_run, self) => {
        self.kill()
        return never()
      })
    }
    await fleet.start(...nodes)
    await fleet.advanceTo('2026-01-01T01:05:00Z')
    expect(fleet.notes.map(({ attempt }) => attempt)).toEqual([1, 2])
    expect(await fleet.history('fatal')).toEqual(['3600/1 lost', '3600/2 lost'])
  })

  it('between claim and start leaves the slot to the next node (N48)', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('close', { every: '1h', onCrash: 'retry', ttl: '10s' }, () => fleet.time.sleep(5))
    }
    await fleet.start(first, second)
    first.link.plan('claim', 'lose-answer')
    await fleet.advanceTo('2026-01-01T00:59:59.999Z')
    await fleet.advance(1)
    first.kill()
    await fleet.advance(60_000)
    expect(fleet.ran).toEqual(['n2 3600/2'])
    expect(await fleet.history('close')).toEqual(['3600/1 lost', '3600/2 succeeded'])
  })
})

describe('a run that was asked to stop, and whose node dies', () => {
  it.each([false, true])('is lost: cancelled, and not run again (task paused: %s)', async (isPaused) => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('close', { every: '1h', onCrash: 'retry', ttl: '10s' }, ({ slot }) =>
        fleet.seconds(slot) === 3_600 ? never() : undefined,
      )
    }
    await fleet.start(first)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    await fleet.start(second)
    first.kill()
    const { tasks } = fleet.driver.open('default')
    const call = { attempt: 1, lockedRows: 'wait' } as const
    const control = { task: 'close', by: 'ops: wrong month', fence: null }
    await tasks.control({ ...control, kind: 'cancel', requestId: 'c' }, call)
    if (isPaused) await tasks.control({ ...control, kind: 'pause', requestId: 'p' }, call)
    await fleet.advance(30_000)
    expect(await fleet.history('close')).toEqual(['3600/1 lost cancelled'])
    const [entry] = await fleet.entries('close')
    expect(entry?.error).toBe('ops: wrong month')
    expect(fleet.slotEvents.filter(({ outcome }) => outcome === 'lost')).toHaveLength(1)
    if (isPaused) await tasks.control({ ...control, kind: 'resume', requestId: 'r' }, call)
    await fleet.advanceTo('2026-01-01T02:00:01Z')
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 7200/1'])
  })
})

describe('a run that is longer than its lease', () => {
  it('is renewed all the time and never begun a second time (N59, N29)', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    for (const node of nodes) {
      node.runs('long', { every: '1h', ttl: '2s', onCrash: 'retry' }, () => fleet.time.sleep(600_000))
    }
    await fleet.start(...nodes)
    await fleet.advanceTo('2026-01-01T01:30:00Z')
    expect(fleet.ran).toEqual(['n1 3600/1'])
    expect(await fleet.history('long')).toEqual(['3600/1 succeeded'])
  })
})

describe('a node that was stopped from renewing', () => {
  it('aborts the signal before the lease lapses in the store, and its late result is recorded as late (M17)', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    const aborted: number[] = []
    for (const node of [first, second]) {
      node.runs('close', { every: '1h', ttl: '10s', onCrash: 'retry' }, async ({ signal, attempt }) => {
        signal.addEventListener('abort', () => aborted.push(fleet.now))
        if (attempt === 1) await fleet.time.sleep(60_000)
      })
    }
    await fleet.start(first, second)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    first.link.isCut = true
    await fleet.advanceTo('2026-01-01T01:00:30Z')
    expect(fleet.ran).toEqual(['n1 3600/1', 'n2 3600/2'])
    expect(aborted).toHaveLength(1)
    expect(aborted[0]).toBeLessThan(fleet.notes[1]?.at ?? 0)
    first.link.isCut = false
    await fleet.advanceTo('2026-01-01T01:02:00Z')
    const entries = await fleet.entries('close')
    expect(entries.find(({ attempt, state }) => attempt === 1 && state === 'lost')?.late).toBe('succeeded')
    expect(fleet.endEvents.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'lost'],
      [2, 'succeeded'],
      [1, 'late'],
    ])
  })

  it('but ends its work after its deadline, not yet taken over, has done it: it is recorded so and not run again', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('close', { every: '1h', ttl: '10s', onCrash: 'retry', heartbeat: false }, () =>
      fleet.time.sleep(9_990),
    )
    await fleet.start(node)
    await fleet.advanceTo('2026-01-01T01:30:00Z')
    expect(await fleet.history('close')).toEqual(['3600/1 succeeded'])
  })
})
