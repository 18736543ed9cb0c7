import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { inOwnContext, momentOf, sleep, systemClock } from '../../src/core/clock.ts'
import { AsyncLocalStorage } from 'node:async_hooks'

describe('the system clock', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const fired = (delayMs: number) => {
    const at: number[] = []
    const startedAt = performance.now()
    const timer = systemClock.setTimer(delayMs, () => at.push(performance.now() - startedAt))
    return { at, timer }
  }

  it.each([0, 0.2, 1, 100, 1_000.5])(
    'calls back after %s ms, never earlier than a millisecond',
    async (delayMs) => {
      const { at } = fired(delayMs)
      await vi.advanceTimersByTimeAsync(5_000)
      expect(at).toHaveLength(1)
      expect(at[0]).toBeGreaterThan(delayMs - 1)
      expect(at[0]).toBeLessThanOrEqual(delayMs + 1)
    },
  )

  it.each([2 ** 31 - 1, 2 ** 31, 2 ** 32 + 5, 366 * 86_400_000])(
    'goes the distance of %i ms in pieces (N15)',
    async (delayMs) => {
      const { at } = fired(delayMs)
      await vi.advanceTimersByTimeAsync(delayMs - 5)
      expect(at).toEqual([])
      await vi.advanceTimersByTimeAsync(10)
      expect(at).toHaveLength(1)
    },
  )

  it('never calls back for Infinity, or when cancelled: before, between two pieces, or twice', async () => {
    const forever = fired(Infinity)
    const early = fired(100)
    early.timer.cancel()
    const late = fired(2 ** 31 + 1_000)
    await vi.advanceTimersByTimeAsync(2 ** 31)
    late.timer.cancel()
    late.timer.cancel()
    await vi.advanceTimersByTimeAsync(2 ** 32)
    expect([forever.at, early.at, late.at]).toEqual([[], [], []])
    forever.timer.cancel()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('can be cancelled from within its own callback', async () => {
    const timer = systemClock.setTimer(10, () => timer.cancel())
    await vi.advanceTimersByTimeAsync(20)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('sleeps', async () => {
    let awake = false
    void sleep(systemClock, 50).then(() => (awake = true))
    await vi.advanceTimersByTimeAsync(49)
    expect(awake).toBe(false)
    await vi.advanceTimersByTimeAsync(2)
    expect(awake).toBe(true)
  })
})

describe('the system clock, in real time', () => {
  it('keeps the process alive only where it is asked to', () => {
    const kept = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = kept()
    const timers = [
      systemClock.setTimer(60_000, () => {}),
      systemClock.setTimer(60_000, () => {}, { keepAlive: false }),
    ]
    expect(kept()).toBe(before)
    timers.push(systemClock.setTimer(60_000, () => {}, { keepAlive: true }))
    expect(kept()).toBe(before + 1)
    for (const timer of timers) timer.cancel()
    expect(kept()).toBe(before)
  })

  it('reads a monotonic clock that agrees with the wall clock about how much time passes', async () => {
    const before = momentOf(systemClock)
    await sleep(systemClock, 30)
    const after = momentOf(systemClock)
    expect(after.monotonic - before.monotonic).toBeGreaterThanOrEqual(29)
    expect(Math.abs(after.monotonic - before.monotonic - (after.wall - before.wall))).toBeLessThan(500)
  })
})

describe('a clock in its own context', () => {
  it('calls back in the context in which it was made, not in that of who sets the timer', async () => {
    const storage = new AsyncLocalStorage<string>()
    const clock = storage.run('maker', () => inOwnContext(systemClock))
    const seen = storage.run(
      'setter',
      () => new Promise((resolve) => clock.setTimer(1, () => resolve(storage.getStore()))),
    )
    expect(await seen).toBe('maker')
  })
})
