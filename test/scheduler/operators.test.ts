import { InvalidOptionError, RunStoppedError, UnknownTaskError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

describe('an operator in another process', () => {
  it('pauses a task for the whole fleet, and resumes it', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    const operator = fleet.node()
    for (const node of nodes) node.runs('task', { every: '10s' })
    await fleet.start(...nodes)
    await fleet.advance(15_000)
    expect(await fleet.time.until(operator.tasks.pause('task', { by: 'ada: migration' }))).toBe('applied')
    expect((await fleet.time.until(operator.tasks.status('task')))?.pausedBy).toBe('ada: migration')
    await fleet.advance(20_000)
    expect(await fleet.time.until(operator.tasks.resume('task'))).toBe('applied')
    await fleet.advance(10_000)
    expect(await fleet.history('task')).toEqual([
      '10/1 succeeded',
      '20/0 skipped paused',
      '30/0 skipped paused',
      '40/1 succeeded',
    ])
    expect((await fleet.time.until(operator.tasks.status('task')))?.pausedBy).toBeNull()
  })

  it('cancels a run on another node within one heartbeat', async () => {
    const fleet = new Fleet()
    const [node, operator] = [fleet.node(), fleet.node()]
    let stoppedAt: number | undefined
    let reason: unknown
    node.runs('task', { every: '1h', ttl: '30s' }, ({ signal }) => {
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          stoppedAt = fleet.now
          reason = signal.reason
          reject(signal.reason as Error)
        })
      })
    })
    await fleet.start(node)
    await fleet.advance(3_605_000)
    const at = fleet.now
    const status = await fleet.time.until(operator.tasks.status('task'))
    expect(status?.running).toMatchObject({ attempt: 1, stop: null })
    const fence = status?.running?.fence ?? 0
    expect(await fleet.time.until(operator.tasks.cancel('task', { fence: fence - 1 }))).toBe('idle')
    expect(await fleet.time.until(operator.tasks.cancel('task', { fence, by: 'ada: wrong day' }))).toBe(
      'applied',
    )
    await fleet.advance(10_500)
    expect(stoppedAt).toBeLessThan(at + 10_500)
    expect(reason).toBeInstanceOf(RunStoppedError)
    const [entry] = await fleet.entries('task')
    expect(entry).toMatchObject({ state: 'abandoned', reason: 'cancelled' })
    expect(entry?.error).toContain('ada: wrong day')
    expect(await fleet.time.until(operator.tasks.cancel('task'))).toBe('idle')
  })

  it('is told that a request with the same id was applied before', async () => {
    const fleet = new Fleet()
    const [node, operator] = [fleet.node(), fleet.node()]
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    const request = { requestId: 'ticket 7' }
    expect(await fleet.time.until(operator.tasks.pause('task', request))).toBe('applied')
    expect(await fleet.time.until(operator.tasks.resume('task'))).toBe('applied')
    expect(await fleet.time.until(operator.tasks.pause('task', request))).toBe('repeated')
    expect((await fleet.time.until(operator.tasks.status('task')))?.pausedBy).toBeNull()
  })

  it('is told if the store knows no such task', async () => {
    const fleet = new Fleet()
    const operator = fleet.node()
    for (const kind of ['pause', 'resume', 'cancel'] as const) {
      await expect(fleet.time.until(operator.tasks[kind]('taks'))).rejects.toThrow(UnknownTaskError)
    }
    expect(await fleet.time.until(operator.tasks.status('taks'))).toBeNull()
  })

  it.each([
    ['by', { by: '' }],
    ['by', { by: 'x'.repeat(301) }],
    ['requestId', { requestId: 5 }],
    ['fence', { fence: 1.5 }],
    ['force', { force: true }],
  ])('cannot give %s as in %j', async (option, options) => {
    const operator = new Fleet().node()
    const cancelled = operator.tasks.cancel('task', options as never)
    await expect(cancelled).rejects.toThrow(InvalidOptionError)
    await expect(cancelled).rejects.toMatchObject({ option })
  })

  it('sees how each task stands', async () => {
    const fleet = new Fleet()
    const [node, operator] = [fleet.node(), fleet.node()]
    const long = 'l'.repeat(300)
    node.runs('tick', { every: '10s' }, ({ slot }) => {
      if (fleet.seconds(slot) === 20) throw new Error('boom')
    })
    node.runs(long, { cron: '0 2 * * *', timeZone: 'Europe/Paris' })
    await fleet.start(node)
    await fleet.advance(35_000)
    await fleet.time.until(node.tasks.stop())
    await fleet.advance(30_000)
    await fleet.start(node)
    await fleet.advance(1_000)
    const tasks = await fleet.time.until(operator.tasks.list())
    expect(tasks.map(({ task }) => task).toSorted()).toEqual([long.slice(0, 200), 'tick'])
    const tick = await fleet.time.until(operator.tasks.status('tick'))
    expect(tick).toMatchObject({
      timing: { everyMs: 10_000 },
      running: null,
      generation: 1,
      isAttended: true,
      counts: { succeeded: 3, failed: 1, abandoned: 0, lost: 0, skipped: 0, missed: 2 },
    })
    expect(tick?.next.map((slot) => fleet.seconds(slot))).toEqual([70, 80, 90])
    expect(fleet.seconds(tick?.lastSuccess?.slot ?? 0)).toBe(60)
    expect(fleet.seconds(tick?.lastFailure?.slot ?? 0)).toBe(20)
    expect(tick?.lastFailure?.error).toContain('boom')
    expect(fleet.seconds(tick?.countedSince ?? 0)).toBe(10)
    const books = await fleet.time.until(operator.tasks.status(long))
    expect(books?.next[0]?.toISOString()).toBe('2026-01-01T01:00:00.000Z')
    expect(books).toMatchObject({ lastSuccess: null, lastFailure: null, countedSince: null })
    await fleet.advance(600_000)
    await fleet.time.until(node.tasks.stop())
    await fleet.advance(600_000)
    expect((await fleet.time.until(operator.tasks.status('tick')))?.isAttended).toBe(false)
  })
})
