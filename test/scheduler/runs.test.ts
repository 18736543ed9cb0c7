import { LeaseLostError, RunStoppedError, type TaskRun } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const never = (): Promise<never> => new Promise(() => {})

describe('a handler', () => {
  it('gets the slot, the attempt, the fence, and a signal that works when taken apart', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const seen: unknown[] = []
    node.tasks.schedule(
      'task',
      { every: '10s' },
      ({ task, slot, attempt, fence, signal, isHeld, assertHeld }) => {
        assertHeld()
        seen.push({
          task,
          slot,
          attempt,
          isFence: Number.isSafeInteger(fence),
          aborted: signal.aborted,
          held: isHeld(),
        })
      },
    )
    await fleet.start(node)
    await fleet.advance(10_500)
    expect(seen).toEqual([
      {
        task: 'task',
        slot: new Date('2026-01-01T00:00:10Z'),
        attempt: 1,
        isFence: true,
        aborted: false,
        held: true,
      },
    ])
  })

  it('that has ended no longer holds its lease, and its signal is not aborted', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let run: TaskRun | undefined
    node.runs('task', { every: '10s' }, (current) => {
      run = current
    })
    await fleet.start(node)
    await fleet.advance(15_000)
    expect(run?.isHeld()).toBe(false)
    expect(run?.signal.aborted).toBe(false)
    expect(() => run?.assertHeld()).toThrow(LeaseLostError)
  })

  it('that has ended is told of no loss by a renewal that the record of its end has overtaken', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let signal: AbortSignal | undefined
    node.runs('task', { every: '10s', ttl: '900ms' }, (run) => {
      signal = run.signal
      return fleet.time.sleep(200)
    })
    await fleet.start(node)
    node.link.plan('complete', async (pass) => {
      const answer = await pass()
      await fleet.time.sleep(500)
      return answer
    })
    await fleet.advance(11_000)
    expect(node.link.count('refresh')).toBe(1)
    expect(await fleet.history('task')).toEqual(['10/1 succeeded'])
    expect(signal?.aborted).toBe(false)
  })

  it.each<[string, () => unknown, string]>([
    [
      'throws',
      () => {
        throw new TypeError('no such account')
      },
      'TypeError: no such account',
    ],
    ['rejects', () => Promise.reject(new Error('timed out')), 'Error: timed out'],
    [
      'throws what is no error, with characters that stores refuse',
      () => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw 'a\0b\ud800c'
      },
      'a\u{FFFD}b\u{FFFD}c',
    ],
    [
      'throws what cannot be shown',
      () => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw Object.create(null)
      },
      'The handler threw something that cannot be shown.',
    ],
    [
      'returns a thenable that throws',
      () => ({
        // oxlint-disable-next-line unicorn/no-thenable
        then() {
          throw new Error('broken promise')
        },
      }),
      'Error: broken promise',
    ],
  ])(
    'that %s has failed: the error is recorded, and the process and the task go on (N58)',
    async (_how, work, text) => {
      const fleet = new Fleet()
      const node = fleet.node()
      node.runs('task', { every: '10s', onCrash: 'retry' }, work)
      await fleet.start(node)
      await fleet.advance(20_500)
      expect(await fleet.history('task')).toEqual(['10/1 failed', '20/1 failed'])
      const [last] = await fleet.entries('task')
      expect(last?.error).toBe(text)
      expect(fleet.endEvents.map(({ outcome }) => outcome)).toEqual(['failed', 'failed'])
      await fleet.end()
    },
  )

  it('may throw an error of any length: its text is cut to what stores keep', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' }, () => Promise.reject(new Error('😀'.repeat(5_000))))
    await fleet.start(node)
    await fleet.advance(10_500)
    const [last] = await fleet.entries('task')
    expect(last?.state).toBe('failed')
    const bytes = Buffer.byteLength(last?.error ?? '')
    expect(bytes).toBeGreaterThan(3_900)
    expect(bytes).toBeLessThanOrEqual(4_000)
  })
})

describe('a handler that never ends', () => {
  it('is aborted at its maximum lifetime, renewed no more, recorded as abandoned; the task goes on (N58, N63)', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const reasons: unknown[] = []
    node.runs('stuck', { every: '1m', ttl: '10s', maxLifetime: '90s' }, ({ signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason))
      return never()
    })
    await fleet.start(node)
    await fleet.advanceTo('2026-01-01T00:04:20Z')
    expect(await fleet.history('stuck')).toEqual([
      '60/1 abandoned max-lifetime',
      '120/0 skipped overlap',
      '180/1 running',
      '240/0 skipped overlap',
    ])
    expect(reasons).toHaveLength(1)
    expect(reasons[0]).toMatchObject({ code: 'LEASE_LOST', reason: 'max-lifetime' })
    const refreshes = node.link.calls.filter(({ verb }) => verb === 'refresh')
    expect(refreshes.length).toBeLessThan(60)
  })

  it('and may be retried is left to lapse at its maximum lifetime, and lost', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const options = { every: '1h', ttl: '10s', maxLifetime: '60s', onCrash: 'retry', maxAttempts: 2 } as const
    node.runs('stuck', options, never)
    await fleet.start(node)
    await fleet.advanceTo('2026-01-01T01:10:00Z')
    expect(await fleet.history('stuck')).toEqual(['3600/1 lost', '3600/2 abandoned max-lifetime'])
  })

  it('but is aborted and ends then after all has its outcome kept as abandoned', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('slow', { every: '1h', ttl: '10s', maxLifetime: '60s' }, () => fleet.time.sleep(120_000))
    await fleet.start(node)
    await fleet.advanceTo('2026-01-01T01:10:00Z')
    expect(await fleet.history('slow')).toEqual(['3600/1 abandoned max-lifetime'])
    expect(fleet.endEvents.map(({ outcome }) => outcome)).toEqual(['abandoned'])
  })
})

describe('a run that an operator asks to stop', () => {
  async function stopping(work: (run: TaskRun, fleet: Fleet) => unknown): Promise<Fleet> {
    const fleet = new Fleet()
    const [first, second] = [fleet.node(), fleet.node()]
    for (const node of [first, second]) {
      node.runs('task', { every: '1h', ttl: '9s', onCrash: 'retry' }, (run) => work(run, fleet))
    }
    await fleet.start(first, second)
    await fleet.advanceTo('2026-01-01T01:00:01Z')
    const session = fleet.driver.open('default')
    const request = {
      task: 'task',
      kind: 'cancel',
      requestId: 'c1',
      by: 'ann: wrong month',
      fence: null,
    } as const
    await session.tasks.control(request, { attempt: 1, lockedRows: 'wait' })
    await session.close()
    return fleet
  }

  it('has its signal aborted within one heartbeat, with a RunStoppedError that says why', async () => {
    const seen: [number, unknown][] = []
    const fleet = await stopping(
      ({ signal }, { time }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            seen.push([time.now, signal.reason])
            reject(signal.reason as Error)
          })
        }),
    )
    await fleet.advance(3_000)
    expect(seen).toHaveLength(1)
    expect(seen[0]?.[1]).toBeInstanceOf(RunStoppedError)
    expect(String(seen[0]?.[1])).toContain('ann: wrong month')
    await fleet.advance(60_000)
    // Not retried: it was not a crash.
    expect(await fleet.history('task')).toEqual(['3600/1 abandoned cancelled'])
  })

  it('and ends well all the same has succeeded', async () => {
    const fleet = await stopping((_run, { time }) => time.sleep(3_500))
    await fleet.advance(60_000)
    expect(await fleet.history('task')).toEqual(['3600/1 succeeded'])
  })

  it('and ignores it is renewed no more, and abandoned within a ttl and the grace', async () => {
    const fleet = await stopping(never)
    await fleet.advance(2_000 + 1_000 + 9_000)
    expect(await fleet.history('task')).toEqual(['3600/1 abandoned cancelled'])
    await fleet.advance(60_000)
    expect(fleet.ran).toEqual(['n1 3600/1'])
  })
})
