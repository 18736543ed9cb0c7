import { describe, expect, it } from 'vitest'
import { InvalidOptionError, LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { FakeClock } from 'leasehold/testing'

describe('the fake clock', () => {
  it('stands still until it is told to go on', async () => {
    const clock = new FakeClock({ wall: 5_000 })
    const started = clock.monotonic()
    await new Promise((resolve) => setImmediate(resolve))
    expect([clock.monotonic() - started, clock.wall()]).toEqual([0, 5_000])
    await clock.advance(250)
    expect([clock.monotonic() - started, clock.wall()]).toEqual([250, 5_250])
  })

  it('fires timers in the order in which they are due, and those due at once in the order they were set', async () => {
    const clock = new FakeClock({ wall: 0 })
    const fired: string[] = []
    const note = (name: string) => () => fired.push(`${name} at ${clock.wall()}`)
    clock.setTimer(20, note('late'))
    clock.setTimer(10, note('one'))
    clock.setTimer(10, note('two'))
    clock.setTimer(0, note('now'))
    await clock.advance(15)
    expect(fired).toEqual(['now at 0', 'one at 10', 'two at 10'])
    await clock.advance(5)
    expect(fired.at(-1)).toBe('late at 20')
  })

  it('fires timers that timers set, if they are due on the way', async () => {
    const clock = new FakeClock({ wall: 0 })
    const ticks: number[] = []
    const tick = () => {
      ticks.push(clock.wall())
      clock.setTimer(10, tick)
    }
    clock.setTimer(10, tick)
    await clock.advance(35)
    expect(ticks).toEqual([10, 20, 30])
    expect(clock.timers).toEqual([{ inMs: 5, keepAlive: false }])
  })

  it('lets what a timer set off come to rest before the next timer fires', async () => {
    const clock = new FakeClock()
    const order: string[] = []
    clock.setTimer(1, () => {
      void (async () => {
        for (let turn = 0; turn < 5; turn++) await Promise.resolve()
        order.push('rest of the first')
      })()
    })
    clock.setTimer(2, () => order.push('second'))
    await clock.advance(2)
    expect(order).toEqual(['rest of the first', 'second'])
  })

  it('never fires a timer that was cancelled', async () => {
    const clock = new FakeClock()
    const fired: string[] = []
    const other = clock.setTimer(10, () => fired.push('other'))
    clock.setTimer(5, () => other.cancel())
    const timer = clock.setTimer(1, () => fired.push('timer'))
    timer.cancel()
    timer.cancel()
    await clock.advance(100)
    expect(fired).toEqual([])
    expect(clock.timers).toEqual([])
  })

  it('shows the timers that are set', () => {
    const clock = new FakeClock()
    clock.setTimer(2 ** 40, () => {}, { keepAlive: true })
    clock.setTimer(7, () => {})
    expect(clock.timers).toEqual([
      { inMs: 7, keepAlive: false },
      { inMs: 2 ** 40, keepAlive: true },
    ])
  })

  it('steps one clock without the other', async () => {
    const clock = new FakeClock({ wall: 10_000 })
    const started = clock.monotonic()
    clock.stepWall(-5_000)
    expect([clock.monotonic() - started, clock.wall()]).toEqual([0, 5_000])
    clock.stepMonotonic(70)
    expect([clock.monotonic() - started, clock.wall()]).toEqual([70, 5_000])
    expect(() => clock.stepMonotonic(-1)).toThrow(InvalidOptionError)
  })

  it('fires late what became due while everything stood still', async () => {
    const clock = new FakeClock({ wall: 0 })
    const fired: number[] = []
    clock.setTimer(10, () => fired.push(clock.wall()))
    clock.stall(500)
    expect(fired).toEqual([])
    await clock.advance(0)
    expect(fired).toEqual([500])
    expect(clock.wall()).toBe(500)
  })

  it('goes on until a promise settles, and says so if it never will', async () => {
    const clock = new FakeClock({ wall: 0 })
    const slow = new Promise<string>((resolve) => clock.setTimer(30_000, () => resolve('done')))
    expect(await clock.until(slow)).toBe('done')
    expect(clock.wall()).toBe(30_000)
    await expect(clock.until(new Promise(() => {}), 1_000)).rejects.toThrow('did not settle within 1000 ms')
    await expect(clock.until(Promise.reject(new RangeError('of the promise')))).rejects.toThrow(
      'of the promise',
    )
  })

  it('refuses times that are none', async () => {
    const clock = new FakeClock()
    expect(() => clock.setTimer(-1, () => {})).toThrow(InvalidOptionError)
    expect(() => clock.setTimer(Number.NaN, () => {})).toThrow(InvalidOptionError)
    await expect(clock.advance(-1)).rejects.toThrow(InvalidOptionError)
    expect(() => new FakeClock({ wall: Number.NaN })).toThrow(InvalidOptionError)
  })

  it('drives a LockService: a lease that is not renewed ends, a renewed one does not', async () => {
    const clock = new FakeClock()
    const driver = memoryDriver({ store: 'fake-clock', now: () => clock.wall() })
    const locks = new LockService({ driver, clock })
    const still = await clock.until(locks.acquire('still', { ttl: '30s', heartbeat: false }))
    const kept = await clock.until(locks.acquire('kept', { ttl: '30s' }))
    await clock.advance(31_000)
    expect([still?.isHeld(), kept?.isHeld()]).toEqual([false, true])
    clock.stepWall(60_000)
    expect(kept?.isHeld()).toBe(false)
    await clock.until(locks.close())
    expect(clock.timers).toEqual([])
  })
})
