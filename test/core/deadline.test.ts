import { beforeEach, describe, expect, it } from 'vitest'
import { Deadline, DeadlineWatch, safetyMargin } from '../../src/core/deadline.ts'
import { momentOf } from '../../src/core/clock.ts'
import { VirtualTime, type WorkerClock } from './virtual-time.ts'

let time: VirtualTime
let clock: WorkerClock

beforeEach(() => {
  time = new VirtualTime()
  clock = time.worker()
})

const deadline = (remainingMs: number, sentAt = momentOf(clock)) => new Deadline(clock, sentAt, remainingMs)

describe('a deadline', () => {
  it('is what the store said remains, from before the request was sent, less the margin', async () => {
    const sentAt = momentOf(clock)
    await time.advance(400)
    expect(deadline(10_000, sentAt).remainingMs).toBe(10_000 - 400 - 100)
    expect(deadline(300, sentAt).remainingMs).toBe(0)
  })

  it('keeps a margin of one hundredth, but no less than 10 ms', () => {
    expect(safetyMargin(100)).toBe(10)
    expect(safetyMargin(1_000)).toBe(10)
    expect(safetyMargin(60_000)).toBe(600)
  })

  it('is moved by a later confirmation, and by an older answer that comes in late not at all', async () => {
    const older = momentOf(clock)
    const one = deadline(10_000)
    await time.advance(5_000)
    const younger = momentOf(clock)
    await time.advance(100)
    one.confirm(younger, 10_000)
    expect(one.remainingMs).toBe(9_800)
    one.confirm(older, 10_000)
    expect(one.remainingMs).toBe(9_800)
  })

  it('is never moved back by a confirmation of less', async () => {
    const one = deadline(60_000)
    await time.advance(1_000)
    one.confirm(momentOf(clock), 5_000)
    expect(one.remainingMs).toBe(58_400)
  })

  it('is past when the monotonic clock says so, whatever became of the wall clock', async () => {
    const one = deadline(1_000)
    clock.stepWall(-3_600_000)
    expect(one.remainingMs).toBe(990)
    await time.advance(990)
    expect(one.remainingMs).toBe(0)
  })

  it('is past when the wall clock says so: a suspended machine freezes the other', async () => {
    const one = deadline(1_000)
    await clock.suspend(2_000)
    expect(clock.monotonic()).toBe(1_000)
    expect(one.remainingMs).toBe(0)
  })

  it('is past when the wall clock was set forward: wrong, but on the safe side', () => {
    const one = deadline(1_000)
    clock.stepWall(2_000)
    expect(one.remainingMs).toBe(0)
  })

  it('confirmed after a step of the wall clock, goes by its new time', async () => {
    const one = deadline(10_000)
    clock.stepWall(5_000)
    expect(one.remainingMs).toBe(4_900)
    await time.advance(1)
    one.confirm(momentOf(clock), 10_000)
    expect(one.remainingMs).toBe(9_900)
  })

  it.each([NaN, Infinity, -Infinity, -1, 0, undefined as unknown as number])(
    'is past at once where a driver answers no sensible time: %s',
    (remainingMs) => {
      expect(deadline(remainingMs).remainingMs).toBe(0)
    },
  )

  it('is not moved by a renewal that was answered with no sensible time', () => {
    const one = deadline(1_000)
    for (const remainingMs of [NaN, Infinity, undefined as unknown as number]) {
      one.confirm(momentOf(clock), remainingMs)
      expect(one.remainingMs).toBe(990)
    }
  })
})

describe('the watch over deadlines', () => {
  const watched = (watch: DeadlineWatch, remainingMs: number) => {
    const member = {
      deadline: deadline(remainingMs),
      passedAt: [] as number[],
      deadlinePassed() {
        this.passedAt.push(time.now)
      },
    }
    watch.watch(member)
    return member
  }

  it('tells before the deadline and not after it, once', async () => {
    const watch = new DeadlineWatch(clock)
    const one = watched(watch, 5_000)
    await time.advance(10_000)
    expect(one.passedAt).toHaveLength(1)
    expect(one.passedAt[0]).toBeLessThanOrEqual(4_950)
    expect(one.passedAt[0]).toBeGreaterThanOrEqual(4_900)
  })

  it('has one timer for all, never set further ahead than a second', async () => {
    const watch = new DeadlineWatch(clock)
    for (let index = 0; index < 100; index++) watched(watch, 60_000 + index)
    for (let second = 0; second < 50; second++) {
      expect(time.timers(clock)).toHaveLength(1)
      expect(time.timers(clock)[0]?.inMs).toBeLessThanOrEqual(1_000)
      await time.advance(997)
    }
  })

  it('tells the earliest first, although it was added last', async () => {
    const watch = new DeadlineWatch(clock)
    const late = watched(watch, 800)
    const early = watched(watch, 200)
    await time.advance(400)
    expect([early.passedAt.length, late.passedAt.length]).toEqual([1, 0])
    await time.advance(400)
    expect([early.passedAt.length, late.passedAt.length]).toEqual([1, 1])
  })

  it('does not keep the process alive', () => {
    watched(new DeadlineWatch(clock), 500)
    expect(time.timers(clock)).toMatchObject([{ keepAlive: false }])
  })

  it('has no timer once nobody is watched', async () => {
    const watch = new DeadlineWatch(clock)
    const [one, other] = [watched(watch, 5_000), watched(watch, 6_000)]
    watch.forget(one)
    expect(time.timers(clock)).toHaveLength(1)
    watch.forget(other)
    expect(time.timers(clock)).toEqual([])
    watched(watch, 100)
    await time.advance(200)
    expect(time.timers(clock)).toEqual([])
  })

  it('tells within a second of waking up from a suspend (N57)', async () => {
    const watch = new DeadlineWatch(clock)
    const one = watched(watch, 30_000)
    await time.advance(300)
    await clock.suspend(60_000)
    expect(one.passedAt).toEqual([])
    await time.advance(1_000)
    expect(one.passedAt).toHaveLength(1)
  })

  it('goes on although a member adds another one while it is told', async () => {
    const watch = new DeadlineWatch(clock)
    let second: ReturnType<typeof watched> | undefined
    const first = {
      deadline: deadline(200),
      deadlinePassed() {
        second = watched(watch, 200)
      },
    }
    watch.watch(first)
    await time.advance(1_000)
    expect(second?.passedAt).toHaveLength(1)
  })
})
