// Workers whose clocks are wrong, and contenders that want less: who holds the key is the store's word (N24, N25).
import { systemClock, type Clock } from 'leasehold'
import { describe, expect, test } from 'vitest'
import { freshNamespace } from '../support/stores.ts'
import { addressOf, describeEach, everyStore, openService } from './subjects.ts'

const hour = 3_600_000

/** A host whose wall clock is off, now by this much, and may be set again. */
function clockOff(byMs: number): Clock & { offBy: number } {
  return {
    offBy: byMs,
    monotonic: systemClock.monotonic,
    wall() {
      return systemClock.wall() + this.offBy
    },
    setTimer: systemClock.setTimer,
  }
}

await describeEach(everyStore, (client) => {
  describe.each([
    ['ahead', hour],
    ['behind', -hour],
  ])('a worker whose clock is an hour %s', (_, off) => {
    test('gets no key that is held, whatever it thinks of the time (N24)', async () => {
      const address = await addressOf(client)
      const namespace = freshNamespace()
      const right = await openService(address, { namespace, ttl: 30_000 })
      const wrong = await openService(address, { namespace, ttl: 30_000, clock: clockOff(off) })
      const lease = (await right.acquire('k'))!
      expect(await wrong.acquire('k')).toBe(null)
      expect(await wrong.acquire('k', { wait: 300 })).toBe(null)
      expect(await lease.release()).toBe('released')
      expect((await wrong.acquire('k'))!.fence).toBeGreaterThan(lease.fence)
    })

    test('holds its key for as long as others would, and knows when it has lost it (N24)', async () => {
      const address = await addressOf(client)
      const namespace = freshNamespace()
      const right = await openService(address, { namespace })
      const wrong = await openService(address, { namespace, clock: clockOff(off) })
      const lease = (await wrong.acquire('k', { ttl: 400, heartbeat: false, wait: 10_000 }))!
      expect(lease.remainingMs).toBeGreaterThan(0)
      expect(lease.remainingMs).toBeLessThan(400)
      const heldUntil = performance.now() + lease.remainingMs
      const successor = (await right.acquire('k', { wait: 10_000 }))!
      expect(heldUntil).toBeLessThan(performance.now())
      expect(lease.isHeld()).toBe(false)
      expect(successor.fence).toBeGreaterThan(lease.fence)
    })
  })

  test('a clock that is set forward ends a lease early and lets nobody in early; set back, it changes nothing', async () => {
    const address = await addressOf(client)
    const namespace = freshNamespace()
    const clock = clockOff(0)
    const stepping = await openService(address, { namespace, ttl: 30_000, clock })
    const other = await openService(address, { namespace })
    const lease = (await stepping.acquire('k', { heartbeat: 20 }))!
    clock.offBy = -hour
    const before = lease.remainingMs
    await expect.poll(() => lease.remainingMs, { interval: 1 }).toBeGreaterThan(before)
    clock.offBy = 11_000 - hour
    lease.assertHeld()
    clock.offBy = hour
    expect(lease.isHeld()).toBe(false)
    expect(await other.acquire('k')).toBe(null)
  })

  test('a contender with a short ttl never evicts a holder with a long one (N25)', async () => {
    const address = await addressOf(client)
    const namespace = freshNamespace()
    const holder = await openService(address, { namespace })
    const contender = await openService(address, { namespace, ttl: 100 })
    const lease = (await holder.acquire('k', { ttl: 60_000, heartbeat: false }))!
    const before = (await holder.peek('k'))!
    expect(await contender.acquire('k')).toBe(null)
    // Longer than its ttl.
    expect(await contender.acquire('k', { wait: 250 })).toBe(null)
    expect(await holder.peek('k')).toMatchObject({ fence: lease.fence, expiresAt: before.expiresAt })
    await lease.extend(60_000)
    expect(await lease.release()).toBe('released')
  })
})
