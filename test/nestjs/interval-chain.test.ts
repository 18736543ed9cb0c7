import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { IntervalChain } from '../../src/nestjs/guard/interval-chain.ts'

const period = 1_000
const start = Date.UTC(2027, 0, 1)

beforeEach(() => {
  vi.useFakeTimers({ now: start + 300, toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
})

/** A chain, and the timer of Nest that drives it, which drifts by so much with each fire. */
function beating(driftMs: number) {
  const fired: number[] = []
  const state = { isBeating: true, isWanted: true }
  const chain = new IntervalChain(
    period,
    (slot) => fired.push((slot - start) / period),
    () => state.isWanted,
  )
  const beat = (): void => {
    if (!state.isBeating) return
    chain.pulse()
    setTimeout(beat, period + driftMs)
  }
  setTimeout(beat, period + driftMs)
  return { fired, state }
}

describe('a chain of an interval', () => {
  it('leaves out no slot, and fires none twice, over three hundred periods of a timer that drifts', async () => {
    const { fired } = beating(1.8)
    await vi.advanceTimersByTimeAsync(302 * period)
    expect(fired.length).toBeGreaterThanOrEqual(300)
    expect(fired).toEqual(fired.map((_slot, index) => (fired[0] ?? 0) + index))
  })

  it('begins after the timer has rung for the first time', async () => {
    const { fired } = beating(0)
    await vi.advanceTimersByTimeAsync(1_600)
    expect(fired).toEqual([])
    await vi.advanceTimersByTimeAsync(200)
    expect(fired).toEqual([2])
  })

  it('ends by itself within three periods of the last beat, and goes on with the next one', async () => {
    const { fired, state } = beating(0)
    await vi.advanceTimersByTimeAsync(5_000)
    state.isBeating = false
    await vi.advanceTimersByTimeAsync(3_000)
    const before = fired.length
    await vi.advanceTimersByTimeAsync(20_000)
    expect(fired).toHaveLength(before)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('fires no more once nobody wants it', async () => {
    const { fired, state } = beating(0)
    await vi.advanceTimersByTimeAsync(5_000)
    const before = fired.length
    state.isWanted = false
    await vi.advanceTimersByTimeAsync(5_000)
    expect(fired).toHaveLength(before)
  })

  it('fires the newest slot once after the process stood still, and then goes on', async () => {
    const { fired } = beating(0)
    await vi.advanceTimersByTimeAsync(3_000)
    const before = fired.length
    vi.setSystemTime(start + 60_300)
    await vi.advanceTimersByTimeAsync(3_000)
    const after = fired.slice(before)
    expect(after).toEqual(after.map((_slot, index) => (after[0] ?? 0) + index))
    expect(after[0]).toBeGreaterThanOrEqual(60)
  })

  it('follows a wall clock that is set back', async () => {
    const { fired } = beating(0)
    await vi.advanceTimersByTimeAsync(5_000)
    const before = fired.length
    vi.setSystemTime(start + 300)
    await vi.advanceTimersByTimeAsync(4_000)
    expect(fired.slice(before).length).toBeGreaterThanOrEqual(2)
    expect(Math.max(...fired.slice(before))).toBeLessThanOrEqual(5)
  })
})
