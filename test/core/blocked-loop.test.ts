import { setTimeout as sleep } from 'node:timers/promises'
import { LeaseLostError, LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

/** Real time: what happens when the event loop really stands still for longer than a lease lasts. */

let locks: LockService
let unhandled: unknown[]
const onUnhandled = (reason: unknown) => unhandled.push(reason)

beforeEach(() => {
  unhandled = []
  process.on('unhandledRejection', onUnhandled)
  locks = new LockService({ driver: memoryDriver({ store: 'blocked loop' }), ttl: 150 })
})

afterEach(async () => {
  await locks.close()
  await sleep(1)
  process.off('unhandledRejection', onUnhandled)
  expect(unhandled).toEqual([])
})

function block(milliseconds: number): void {
  const until = performance.now() + milliseconds
  while (performance.now() < until);
}

async function hold(key: string) {
  const lease = await locks.acquire(key)
  if (lease === null) throw new Error('The key is free.')
  return lease
}

describe('right after the event loop was blocked for longer than the ttl (N4, N23)', () => {
  it('isHeld, assertHeld, remainingMs and lossReason know of the loss', async () => {
    const lease = await hold('a')
    block(200)
    expect(lease.isHeld()).toBe(false)
    expect(() => lease.assertHeld()).toThrow(LeaseLostError)
    expect(lease.remainingMs).toBe(0)
    expect(lease.lossReason).toBe('expired')
  })

  it("the lease's own signal is aborted, and throwIfAborted throws", async () => {
    const [one, other, third] = [await hold('a'), await hold('b'), await hold('c')]
    const signals = [one.signal, other.signal, third.signal] as const
    block(200)
    expect(signals[0].aborted).toBe(true)
    expect(() => signals[1].throwIfAborted()).toThrow(LeaseLostError)
    expect(signals[2].reason).toBeInstanceOf(LeaseLostError)
  })

  it('also a signal that is asked for only then', async () => {
    const lease = await hold('a')
    block(200)
    expect(lease.signal.aborted).toBe(true)
  })

  it('its listeners are called in the next turn, once, before anything of the store comes in', async () => {
    const lease = await hold('a')
    let heard = 0
    lease.signal.addEventListener('abort', () => heard++)
    block(200)
    expect(heard).toBe(0)
    await sleep(1)
    expect(heard).toBe(1)
    await sleep(200)
    expect(heard).toBe(1)
  })

  it('a signal derived with AbortSignal.any follows in the next turn', async () => {
    const lease = await hold('a')
    const derived = AbortSignal.any([lease.signal, new AbortController().signal])
    block(200)
    await sleep(1)
    expect(derived.aborted).toBe(true)
    expect(derived.reason).toBeInstanceOf(LeaseLostError)
  })

  it('an extension is refused, and the key can be had by others', async () => {
    const lease = await hold('a')
    block(200)
    await expect(lease.extend('1s')).rejects.toMatchObject({ code: 'LEASE_LOST', reason: 'expired' })
    expect(await locks.acquire('a')).not.toBeNull()
    expect(await lease.release()).toBe('already-lost')
  })

  it('what used the signal has been stopped: fetch, timers, events', async () => {
    const lease = await hold('a')
    block(200)
    await expect(fetch('http://127.0.0.1:9/', { signal: lease.signal })).rejects.toBeInstanceOf(
      LeaseLostError,
    )
    await expect(sleep(1_000, undefined, { signal: lease.signal })).rejects.toMatchObject({
      code: 'ABORT_ERR',
    })
  })
})

it('a lease that is renewed survives blocks that are shorter than its ttl', async () => {
  const lease = await locks.acquire('a', { ttl: 900 })
  for (let round = 0; round < 6; round++) {
    block(200)
    await sleep(50)
  }
  expect(lease?.isHeld()).toBe(true)
})
