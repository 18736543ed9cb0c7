import { RunStoppedError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

describe('a timeout', () => {
  it('aborts the signal with a RunStoppedError, and the run is recorded as abandoned: timeout', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let reason: unknown
    node.runs('task', { every: '1m', timeout: '5s', onCrash: 'retry' }, ({ signal }) => {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reason = signal.reason
          reject(signal.reason as Error)
        })
      })
    })
    await fleet.start(node)
    await fleet.advance(64_900)
    expect(reason).toBeUndefined()
    await fleet.advance(200)
    expect(reason).toBeInstanceOf(RunStoppedError)
    expect((reason as Error).message).toContain('timeout of 5s')
    await fleet.advance(40_000)
    expect(await fleet.history('task')).toEqual(['60/1 abandoned timeout'])
  })

  it('cuts off a handler that ignores it: the task goes on with the next slot', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1m', timeout: '5s', ttl: '3s' }, ({ slot }) =>
      fleet.seconds(slot) === 60 ? new Promise(() => {}) : undefined,
    )
    await fleet.start(node)
    await fleet.advance(121_000)
    expect(await fleet.history('task')).toEqual(['60/1 abandoned timeout', '120/1 succeeded'])
    expect((await fleet.entries('task')).find(({ state }) => state === 'abandoned')?.durationMs).toBeLessThan(
      10_000,
    )
  })

  it('leaves alone what is done in time, and no timer stays', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s', timeout: '9s' }, () => fleet.time.sleep(8_000))
    await fleet.start(node)
    await fleet.advance(29_000)
    expect(await fleet.history('task')).toEqual(['10/1 succeeded', '20/1 succeeded'])
  })
})

describe('jitter', () => {
  it('spreads tasks that are due together, the same way on all nodes, and each slot still runs once', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    const names = Array.from({ length: 40 }, (_, index) => `task ${index}`)
    for (const node of nodes) for (const name of names) node.runs(name, { every: '1m', jitter: '30s' })
    await fleet.start(...nodes)
    await fleet.advance(150_000)
    for (const slot of [60, 120]) {
      const begun = fleet.notes.filter((note) => fleet.seconds(note.slot) === slot)
      expect(new Set(begun.map(({ task }) => task)).size).toBe(40)
      expect(begun).toHaveLength(40)
      const delays = begun.map(({ at }) => fleet.seconds(at) - slot)
      expect(Math.min(...delays)).toBeLessThan(5)
      expect(Math.max(...delays)).toBeGreaterThan(25)
      expect(Math.max(...delays)).toBeLessThan(30.1)
    }
  })

  it('never delays a slot beyond the next one', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s', jitter: '1h' })
    await fleet.start(node)
    await fleet.advance(100_500)
    expect(fleet.slotsRun.slice(0, 9)).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90])
    for (const { at, slot } of fleet.notes) expect(at - slot).toBeLessThan(9_200)
    expect((await fleet.history('task')).filter((line) => !line.endsWith('succeeded'))).toEqual([])
  })
})
