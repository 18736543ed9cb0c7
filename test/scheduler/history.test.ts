import { LockService, type RunHistoryEntry, TaskScheduler } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

describe('the history of a task', () => {
  it('tells of each run its slot, attempt, node, start, duration, outcome and error, the latest first', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' }, async ({ slot }) => {
      await fleet.time.sleep(250)
      if (fleet.seconds(slot) === 20) throw new RangeError('out of paper')
    })
    await fleet.start(node)
    await fleet.advance(30_100)
    const entries = await fleet.time.until(node.tasks.history('task'))
    const self = {
      instance: expect.any(String) as string,
      host: expect.any(String) as string,
      pid: process.pid,
    }
    const common = { task: 'task', attempt: 1, reason: null, holder: self, late: null }
    const [third, second, first, registered] = entries
    expect(third).toMatchObject({ ...common, state: 'running', endedAt: null, durationMs: null, error: null })
    expect(second).toMatchObject({
      ...common,
      state: 'failed',
      durationMs: 250,
      error: 'RangeError: out of paper',
    })
    expect(first).toMatchObject({
      ...common,
      slot: new Date('2026-01-01T00:00:10Z'),
      state: 'succeeded',
      fence: fleet.notes[0]?.fence,
      startedAt: new Date('2026-01-01T00:00:10Z'),
      endedAt: new Date('2026-01-01T00:00:10.250Z'),
      durationMs: 250,
    })
    expect(registered).toMatchObject({ state: 'registered', attempt: 0, holder: null })
    expect(entries).toHaveLength(4)
  })

  it('has no token in it', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.advance(30_100)
    const text = JSON.stringify(await fleet.entries('task'))
    const tokens = node.link.requests('claim').map(({ token }) => String(token))
    expect(tokens).toHaveLength(3)
    for (const token of tokens) expect(text).not.toContain(token)
  })

  it('tells the same on a node whose own schedule the fleet has replaced', async () => {
    const fleet = new Fleet()
    const [old, edited] = [fleet.node(), fleet.node()]
    old.runs('task', { every: '10s' })
    edited.runs('task', { every: '30s' })
    await fleet.start(old)
    await fleet.start(edited)
    await fleet.advance(95_000)
    const known = await fleet.time.until(edited.tasks.history('task'))
    expect(known.filter(({ state }) => state === 'succeeded')).toHaveLength(3)
    expect(await fleet.time.until(old.tasks.history('task'))).toEqual(known)
  })

  it('is cut to its limit, in the middle of a gap too', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1s' })
    await fleet.start(node)
    await fleet.advance(2_500)
    await node.tasks.stop()
    await fleet.advance(10_000)
    await fleet.start(node)
    await fleet.advance(1)
    const entries = await fleet.time.until(node.tasks.history('task', { limit: 4 }))
    const shown = (entry: RunHistoryEntry): string => `${fleet.seconds(entry.slot)} ${entry.state}`
    expect(entries.map(shown)).toEqual(['12 succeeded', '11 missed', '10 missed', '9 missed'])
  })

  it('is read without start, also by a process that does not have the task, and knows its gaps by the stored schedule', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('a task with a name that is too long to be stored as it is '.repeat(10), {
      cron: '*/2 * * * * *',
    })
    await fleet.start(node)
    await fleet.advance(2_500)
    await node.tasks.stop()
    await fleet.advance(4_000)
    await fleet.start(node)
    await fleet.advance(1)
    expect(
      await fleet.history('a task with a name that is too long to be stored as it is '.repeat(10)),
    ).toEqual(['2/1 succeeded', '4/0 missed down', '6/1 succeeded'])
  })

  it('of an unknown task is empty', async () => {
    await using locks = new LockService({ driver: memoryDriver({ store: 'history' }) })
    const tasks = new TaskScheduler({ locks })
    expect(await tasks.history('nobody')).toEqual([])
  })

  it('cannot be read while the store is down, and says so', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.link.isCut = true
    await expect(fleet.time.until(node.tasks.history('task'))).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
  })
})

describe('tasks that are added later', () => {
  it('are registered at once, and fire', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await fleet.start(node)
    await fleet.advance(5_000)
    node.runs('late', { every: '10s' })
    await fleet.advance(5_500)
    expect(fleet.ran).toEqual(['n1 10/1'])
  })

  it('while the store is down are registered when it is back', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await fleet.start(node)
    node.link.isCut = true
    node.runs('late', { every: '10s' })
    await fleet.advance(25_000)
    node.link.isCut = false
    await fleet.advance(20_500)
    expect(fleet.slotsRun).toContain(40)
  })

  it('after a stop wait for the next start', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await fleet.start(node)
    await node.tasks.stop()
    node.runs('late', { every: '10s' })
    await fleet.advance(15_000)
    expect(fleet.notes).toEqual([])
    await fleet.start(node)
    await fleet.advance(10_000)
    expect(fleet.slotsRun).toEqual([20])
  })
})
