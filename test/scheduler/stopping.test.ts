import { RunStoppedError, SchedulerStateError, ClosedError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const never = (): Promise<never> => new Promise(() => {})

describe('stop', () => {
  it('fires nothing any more, also for a slot that was about to come due (N45)', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1s' })
    await fleet.start(node)
    await fleet.advance(2_999)
    await fleet.time.until(node.tasks.stop())
    await fleet.advance(10_000)
    expect(fleet.slotsRun).toEqual([1, 2])
    expect(fleet.time.timers(node.clock)).toEqual([])
  })

  it('keeps the lease of a running task alive until it has ended, and only then gives it up (N44, M4, M16)', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('long', { every: '1m', ttl: '2s', onCrash: 'retry' }, () => fleet.time.sleep(40_000))
    }
    await fleet.start(first)
    await fleet.advance(61_000)
    await fleet.start(second)
    await fleet.advance(4_000)
    let stoppedAt = 0
    const stopped = first.tasks.stop({ drain: '60s' }).then(() => {
      stoppedAt = fleet.now
    })
    await fleet.time.until(stopped)
    expect(fleet.seconds(stoppedAt)).toBeCloseTo(100, 1)
    expect(await fleet.history('long')).toEqual(['60/1 succeeded'])
    await fleet.advance(30_000)
    expect(fleet.ran).toEqual(['n1 60/1', 'n2 120/1'])
  })

  it('aborts what runs at the drain limit with a RunStoppedError; one that ends then is recorded as abandoned', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let reason: unknown
    node.runs(
      'long',
      { every: '1m' },
      ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason
            reject(signal.reason as Error)
          })
        }),
    )
    await fleet.start(node)
    await fleet.advance(61_000)
    await fleet.time.until(node.tasks.stop({ drain: '10s' }))
    expect(fleet.seconds(fleet.now)).toBe(71)
    expect(reason).toBeInstanceOf(RunStoppedError)
    expect(await fleet.history('long')).toEqual(['60/1 abandoned stopped'])
  })

  it("leaves a run that was cut short to be retried elsewhere with onCrash: 'retry'", async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('long', { every: '1h', ttl: '10s', onCrash: 'retry' }, ({ attempt, signal }) =>
        attempt > 1
          ? undefined
          : new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('cut short')))
            }),
      )
    }
    await fleet.start(first)
    await fleet.advanceTo('2026-01-01T01:00:00.500Z')
    await fleet.start(second)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    await fleet.time.until(first.tasks.stop({ drain: 0 }))
    await fleet.advance(11_000)
    expect(await fleet.history('long')).toEqual(['3600/1 lost', '3600/2 succeeded'])
  })

  it('resolves although a handler never ends, a second after the drain limit; its lease lapses and it is abandoned', async () => {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) node.runs('stuck', { every: '1m', ttl: '10s' }, never)
    await fleet.start(first)
    await fleet.advance(60_500)
    await fleet.start(second)
    await fleet.advance(500)
    await fleet.time.until(first.tasks.stop({ drain: '5s' }))
    expect(fleet.seconds(fleet.now)).toBe(67)
    expect(await fleet.history('stuck')).toEqual(['60/1 running'])
    await fleet.advance(11_000)
    expect(await fleet.history('stuck')).toEqual(['60/1 abandoned stopped'])
    await fleet.advanceTo('2026-01-01T00:02:01Z')
    expect(fleet.ran).toEqual(['n1 60/1', 'n2 120/1'])
  })

  it('runs a slot that was granted while it was called, within its drain', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1m' }, () => fleet.time.sleep(3_000))
    await fleet.start(node)
    node.link.lagMs = 100
    await fleet.advance(60_050)
    await fleet.time.until(node.tasks.stop())
    expect(await fleet.history('tick')).toEqual(['60/1 succeeded'])
  })

  it('does not begin a slot that was granted after the drain limit: it is skipped: stopped', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1m' })
    await fleet.start(node)
    node.link.lagMs = 100
    await fleet.advance(60_050)
    await fleet.time.until(node.tasks.stop({ drain: 0 }))
    await fleet.advance(1_000)
    expect(fleet.notes).toEqual([])
    expect(await fleet.history('tick')).toEqual(['60/1 skipped stopped'])
  })

  it("leaves a slot that was granted after the drain limit to a live node with onCrash: 'retry'", async () => {
    const fleet = new Fleet()
    const [node, other] = [fleet.node(), fleet.node()]
    for (const one of [node, other]) one.runs('tick', { every: '1m', ttl: '5s', onCrash: 'retry' })
    await fleet.start(node)
    node.link.lagMs = 100
    await fleet.advance(60_050)
    await fleet.time.until(node.tasks.stop({ drain: 0 }))
    await fleet.start(other)
    await fleet.advance(6_000)
    expect(fleet.ran).toEqual(['n2 60/2'])
  })

  it('does not wait for a store that is away, except to record what has run', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('tick', { every: '1s' })
    await fleet.start(node)
    await fleet.advance(1_500)
    node.link.isCut = true
    await fleet.advance(5_000)
    const before = fleet.now
    await fleet.time.until(node.tasks.stop())
    expect(fleet.now - before).toBeLessThan(100)
  })

  it('records an outcome although the store is away for a part of the drain', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1m', ttl: '30s' }, () => fleet.time.sleep(2_000))
    await fleet.start(node)
    await fleet.advance(61_000)
    node.link.isCut = true
    const stopped = node.tasks.stop({ drain: '30s' })
    await fleet.advance(10_000)
    node.link.isCut = false
    await fleet.time.until(stopped)
    expect(await fleet.history('task')).toEqual(['60/1 succeeded'])
  })

  it('gives up at the drain limit what the store does not confirm, and the run lapses', async () => {
    const fleet = new Fleet()
    const [node, other] = [fleet.node(), fleet.node()]
    for (const one of [node, other])
      one.runs('task', { every: '1m', ttl: '10s' }, () => fleet.time.sleep(2_000))
    await fleet.start(node)
    await fleet.advance(60_500)
    await fleet.start(other)
    await fleet.advance(500)
    node.link.isCut = true
    await fleet.time.until(node.tasks.stop({ drain: '5s' }))
    expect(fleet.seconds(fleet.now)).toBe(67)
    await fleet.advance(10_000)
    expect(await fleet.history('task')).toEqual(['60/1 lost'])
    expect(fleet.endEvents.map(({ outcome }) => outcome)).toEqual(['unknown'])
  })

  it('asks for nothing in a loop when a lease ends in the last second, while the store is away', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1m', ttl: '1s' }, () => fleet.time.sleep(1_700))
    await fleet.start(node)
    await fleet.advance(60_500)
    node.link.isCut = true
    await fleet.time.until(node.tasks.stop({ drain: '500ms' }))
    const before = node.link.count('complete')
    await fleet.advance(10_000)
    expect(node.link.count('complete') - before).toBeLessThanOrEqual(1)
    expect(fleet.endEvents.map(({ outcome }) => outcome)).toEqual(['unknown'])
  })

  it('is idempotent, may come before the start, and may be called from a handler', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await node.tasks.stop()
    let inside: Promise<void> | undefined
    node.runs('task', { every: '1m' }, () => {
      inside = node.tasks.stop()
    })
    await fleet.start(node)
    await fleet.advance(61_000)
    await inside
    await Promise.all([node.tasks.stop(), node.tasks.stop()])
    expect(await fleet.history('task')).toEqual(['60/1 succeeded'])
    expect(fleet.time.timers(node.clock)).toEqual([])
  })

  it('is what await using does', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1m' })
    await fleet.start(node)
    await fleet.time.until(node.tasks[Symbol.asyncDispose]())
    await fleet.advance(120_000)
    expect(fleet.notes).toEqual([])
  })
})

describe('start', () => {
  it('is refused while it runs and while it stops, and works again after that', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' }, () => fleet.time.sleep(3_000))
    await fleet.start(node)
    await expect(node.tasks.start()).rejects.toThrow(SchedulerStateError)
    await fleet.advance(11_000)
    const stopped = node.tasks.stop()
    await expect(node.tasks.start()).rejects.toMatchObject({ code: 'SCHEDULER_STATE' })
    await fleet.time.until(stopped)
    await fleet.start(node)
    await fleet.advance(12_000)
    expect(fleet.slotsRun).toEqual([10, 20])
  })

  it('is refused on a closed service', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await node.locks.close()
    await expect(node.tasks.start()).rejects.toThrow(ClosedError)
  })

  it('keeps the process alive, unless asked not to', async () => {
    const fleet = new Fleet()
    const [alive, idle] = [fleet.node(), fleet.node({ keepAlive: false })]
    for (const node of [alive, idle]) node.runs('task', { every: '1h' })
    await fleet.start(alive, idle)
    await fleet.advance(1_000)
    expect(fleet.time.timers(alive.clock).some(({ keepAlive }) => keepAlive)).toBe(true)
    expect(fleet.time.timers(idle.clock).some(({ keepAlive }) => keepAlive)).toBe(false)
    expect(fleet.time.timers(idle.clock).length).toBeGreaterThan(0)
  })
})

describe('closing the service below', () => {
  it('stops the scheduler, and nothing of ours is left, with a handler that never ends too', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let reason: unknown
    node.runs('stuck', { every: '1m' }, ({ signal }) => {
      signal.addEventListener('abort', () => {
        reason = signal.reason
      })
      return never()
    })
    await fleet.start(node)
    await fleet.advance(61_000)
    await fleet.time.until(node.locks.close())
    expect(reason).toBeInstanceOf(RunStoppedError)
    expect(fleet.time.timers(node.clock)).toEqual([])
    await fleet.advance(600_000)
    expect(fleet.ran).toEqual(['n1 60/1'])
  })
})
