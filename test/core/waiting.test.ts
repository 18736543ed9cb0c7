import { ClosedError, StoreUnavailableError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { answer, delay, fail, gate, hang } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld, soFar, type Worker } from './world.ts'

const world = eachWorld()

/** Waits for a key, notes when it got it, holds it for so long and gives it back. */
async function takeTurn(worker: Worker, name: string, turns: string[], holdMs = 10): Promise<void> {
  const lease = await worker.locks.acquire('job', { wait: Infinity })
  turns.push(name)
  await world().time.sleep(holdMs)
  await lease?.release()
}

describe('a wait', () => {
  it('for a free key asks once and subscribes to nothing', async () => {
    const { locks } = world().worker()
    expect(await world().until(locks.acquire('job', { wait: '5s' }))).not.toBeNull()
    expect(world().driver.calls.map(({ verb }) => verb)).toEqual(['acquire'])
    expect(world().driver.calls[0]?.items[0]?.waitingMs).toBe(0)
  })

  it('that ends with the key held answers null, no earlier and hardly later (N9)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s' })
    for (const wait of [1, 50, 300, 5_000]) {
      const startedAt = world().time.now
      expect(await world().until(other.locks.acquire('job', { wait }))).toBeNull()
      expect(world().time.now - startedAt).toBe(wait)
    }
  })

  it('longer than the ttl of what it gets, gets a fresh lease (M8, M29)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const waiting = other.locks.acquire('job', { wait: '60s', ttl: '200ms' })
    await world().time.advance(30_000)
    await world().until(lease.release())
    const granted = await world().until(waiting)
    expect(granted?.remainingMs).toBeGreaterThan(180)
  })

  it('ends when the holder died, one ttl after its last renewal, without anybody else doing anything (N32)', async () => {
    const [one, other] = [world().worker({ ttl: '2s' }), world().worker()]
    const lease = await one.hold('job')
    await world().time.advance(3_000)
    one.clock.frozen = true
    world().driver.always('refresh', hang)
    const startedAt = world().time.now
    const granted = await world().until(other.locks.acquire('job', { wait: Infinity }))
    expect(world().time.now - startedAt).toBeLessThanOrEqual(2_010)
    expect(granted?.fence).toBeGreaterThan(lease.fence)
    one.clock.frozen = false
  })

  it('ends one ttl after the holder died also where nothing is pushed, and asks rarely until then', async () => {
    const [one, other] = [world().worker({ ttl: '20s' }), world().worker()]
    await one.hold('job', { heartbeat: false })
    world().driver.always('listen', fail('unusable'))
    const waiting = other.locks.acquire('job', { wait: Infinity, waitStep: '1s' })
    await world().until(waiting)
    expect(world().time.now).toBeLessThanOrEqual(20_010)
    expect(world().driver.count('acquire')).toBeLessThanOrEqual(30)
  })

  it.each([0, -1, NaN])('survives a store that says %s ms remain', async (remainingMs) => {
    const { locks } = world().worker()
    world().driver.always('acquire', answer({ outcome: 'held', fence: 1, remainingMs, holder: '{}' }))
    expect(await world().until(locks.acquire('job', { wait: '1s' }))).toBeNull()
    expect(world().driver.count('acquire')).toBeLessThan(1_000)
  })
})

describe('a release', () => {
  it('wakes the waiter at once, by push: nothing was polled', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const waiting = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    world().driver.forget()
    await world().time.advance(3_000)
    expect(world().driver.count('acquire')).toBe(0)
    const releasedAt = world().time.now
    void lease.release()
    await world().until(waiting)
    expect(world().time.now).toBe(releasedAt)
    expect(world().driver.count('acquire')).toBe(1)
  })

  it('wakes one waiter per process, and costs the others one lost try each', async () => {
    const [holder, ...others] = Array.from({ length: 5 }, () => world().worker())
    const lease = await holder?.hold('job')
    for (const { locks } of others)
      for (let index = 0; index < 10; index++) void locks.acquire('job', { wait: '60s' })
    await world().time.advance(1_000)
    world().driver.forget()
    await world().until(Promise.resolve(lease?.release()))
    await world().time.advance(100)
    // One wins and the next in its line asks too; three lose.
    expect(world().driver.count('acquire')).toBe(5)
    await world().time.advance(60_000)
  })

  it('between a try that answers "held" and the sleep after it is not slept through', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const slow = gate()
    const waiting = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    world().driver.plan('acquire', slow.after)
    // It asks again after its sleep, and is told "held"; the release happens while that answer travels.
    await world().time.advance(6_000)
    await world().until(lease.release())
    slow.letGo()
    await world().time.advance(20)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('between the first try and the subscription is not slept through either', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    world().driver.plan('listen', delay(world().time, 200))
    const waiting = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(100)
    void lease.release()
    await world().time.advance(200)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('of this very process hands the key over without push and without waiting for a poll', async () => {
    const { locks, hold } = world().worker()
    world().driver.always('listen', fail('unusable'))
    const lease = await hold('job')
    const waiting = locks.acquire('job', { wait: Infinity, waitStep: '1m' })
    await world().time.advance(500)
    void lease.release()
    await world().time.advance(10)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('whose message was lost costs a few seconds, not the ttl', async () => {
    const [one, other] = [world().worker({ ttl: '1h' }), world().worker()]
    const lease = await one.hold('job')
    const waiting = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    // Released in a way that tells nobody: the record forgets who waits.
    world().driver.plan(
      'acquire',
      answer({ outcome: 'held', fence: 1, remainingMs: 3_600_000, holder: '{}' }),
    )
    await world().until(lease.release())
    await world().time.advance(6_000)
    expect(await soFar(waiting)).not.toBe('pending')
  })
})

describe('a line of waiters', () => {
  it('in one process is served in the order of its calls', async () => {
    const one = world().worker()
    const lease = await one.hold('job')
    const turns: string[] = []
    const all = Promise.all(Array.from({ length: 10 }, (_, index) => takeTurn(one, `w${index}`, turns)))
    await world().time.advance(100)
    void lease.release()
    await world().until(all)
    expect(turns).toEqual(Array.from({ length: 10 }, (_, index) => `w${index}`))
  })

  it('is served in order although the key becomes free while they come', async () => {
    const one = world().worker()
    world().driver.always('acquire', delay(world().time, 1, 1))
    const lease = await one.hold('job')
    const turns: string[] = []
    const all = Promise.all(Array.from({ length: 25 }, (_, index) => takeTurn(one, `w${index}`, turns)))
    await world().time.advance(5)
    void lease.release()
    await world().until(all)
    expect(turns).toEqual(Array.from({ length: 25 }, (_, index) => `w${index}`))
  })

  it('costs the store one waiter, however many wait: 100 callers in one tick, one try', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s' })
    world().driver.forget()
    const waits = Array.from({ length: 100 }, () => other.locks.acquire('job', { wait: '10s' }))
    await world().time.advance(4_000)
    // The plain first try, the one that announces the waiter, and the probe of the channel.
    expect(world().driver.count('acquire')).toBe(2)
    expect(world().driver.count('listen')).toBe(1)
    expect((await world().until(Promise.all(waits))).every((lease) => lease === null)).toBe(true)
  })

  it('loses whoever runs out of time, each at its own, and nobody else (M14)', async () => {
    const one = world().worker()
    const lease = await one.hold('job', { ttl: '60s' })
    const ended: [number, number][] = []
    const waits = [100, 400, 200, 300, 50].map(async (wait) => {
      const startedAt = world().time.now
      expect(await one.locks.acquire('job', { wait })).toBeNull()
      ended.push([wait, world().time.now - startedAt])
    })
    const patient = one.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    await Promise.all(waits)
    expect(ended).toEqual([50, 100, 200, 300, 400].map((wait) => [wait, wait]))
    expect(await soFar(patient)).toBe('pending')
    void lease.release()
    expect(await world().until(patient)).not.toBeNull()
  })

  it('never drifts: after an hour of comings and goings, waits end to the millisecond (M14)', async () => {
    const one = world().worker()
    await one.hold('job', { ttl: '2h' })
    for (let round = 0; round < 200; round++) {
      const startedAt = world().time.now
      const waits = Array.from({ length: 10 }, (_, index) =>
        one.locks.acquire('job', { wait: 1_000 + index * 1_700 }),
      )
      await world().until(Promise.all(waits))
      expect(world().time.now - startedAt).toBe(1_000 + 9 * 1_700)
    }
  })

  it('goes on when its first is cancelled with a try in the air', async () => {
    const one = world().worker()
    const lease = await one.hold('job')
    const controller = new AbortController()
    const first = one.locks
      .acquire('job', { wait: Infinity, signal: controller.signal })
      .catch(() => 'cancelled')
    const second = one.locks.acquire('job', { wait: Infinity })
    const slow = gate()
    await world().time.advance(1_000)
    world().driver.plan('acquire', slow.before)
    await world().until(lease.release())
    await rest()
    // The first one's try is on its way to a free key.
    controller.abort()
    expect(await soFar(first)).toBe('cancelled')
    slow.letGo()
    expect(await world().until(second)).not.toBeNull()
    expect(world().time.now).toBeLessThan(1_100)
  })

  it('goes on at once when its first is cancelled in its sleep', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const controller = new AbortController()
    const first = other.locks
      .acquire('job', { wait: Infinity, signal: controller.signal })
      .catch(() => 'cancelled')
    const second = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    world().driver.forget()
    controller.abort()
    await first
    await rest()
    // The second is the first now, and has asked.
    expect(world().driver.count('acquire')).toBe(1)
    await world().until(lease.release())
    expect(await world().until(second)).not.toBeNull()
  })

  it('goes on when its first fails for good', async () => {
    const one = world().worker()
    await one.hold('job', { ttl: '10s', heartbeat: false })
    const first = one.locks.acquire('job', { wait: Infinity }).catch((error: unknown) => error)
    const second = one.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    world().driver.plan('acquire', fail('unusable'))
    expect(await world().until(first)).toMatchObject({ code: 'STORE_UNUSABLE' })
    expect(await world().until(second)).not.toBeNull()
  })

  it('of one key does not hold up another', async () => {
    const one = world().worker()
    await one.hold('a', { ttl: '60s' })
    void one.locks.acquire('a', { wait: '30s' })
    await world().time.advance(100)
    expect(await world().until(one.locks.acquire('b', { wait: '30s' }))).not.toBeNull()
    await world().time.advance(30_000)
  })

  it('is not joined by a call that does not wait', async () => {
    const one = world().worker()
    const lease = await one.hold('job')
    const waiting = one.locks.acquire('job', { wait: Infinity })
    await world().time.advance(100)
    expect(await world().until(one.locks.acquire('job'))).toBeNull()
    void lease.release()
    expect(await world().until(waiting)).not.toBeNull()
  })

  it('hands the key on when the holder lost it, without waiting for a message', async () => {
    const one = world().worker()
    const lease = await one.hold('job', { ttl: '1s', heartbeat: false })
    const waiting = one.locks.acquire('job', { wait: Infinity })
    await world().until(waiting)
    expect(lease.isHeld()).toBe(false)
    expect(world().time.now).toBeLessThanOrEqual(1_010)
  })
})

describe('a wait whose store fails', () => {
  it('to the end rejects: nobody found out whether the key is held', async () => {
    const { locks } = world().worker()
    world().driver.always('everything', fail('not-sent'))
    for (const wait of [1, 500, 5_000]) {
      const error = await world().until(locks.acquire('job', { wait }).catch((e: unknown) => e))
      expect(error).toBeInstanceOf(StoreUnavailableError)
    }
  })

  it('by not answering rejects, when the answer to the last try is overdue', async () => {
    const { locks } = world().worker({ requestTimeout: '2s' })
    world().driver.always('everything', hang)
    for (const wait of [1, 500, 3_000]) {
      const startedAt = world().time.now
      const error = await world().until(locks.acquire('job', { wait }).catch((e: unknown) => e))
      expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', applied: 'unknown' })
      expect(world().time.now - startedAt).toBeLessThanOrEqual(wait + 2_000)
    }
  })

  it('rejects for those behind the first one as well', async () => {
    const { locks } = world().worker({ requestTimeout: '2s' })
    world().driver.always('everything', hang)
    const outcomes = [3_000, 100, 700].map((wait) => locks.acquire('job', { wait }).catch((e: unknown) => e))
    for (const outcome of await world().until(Promise.all(outcomes))) {
      expect(outcome).toBeInstanceOf(StoreUnavailableError)
    }
  })

  it('and then recovers, with the key held, answers null', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s', heartbeat: false })
    world().driver.always('everything', fail('not-sent'))
    const waiting = other.locks.acquire('job', { wait: '10s' })
    await world().time.advance(5_000)
    world().driver.heal()
    expect(await world().until(waiting)).toBeNull()
  })

  it('and goes down only after it had said "held", still rejects', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s', heartbeat: false })
    const waiting = other.locks.acquire('job', { wait: '20s' }).catch((e: unknown) => e)
    await world().time.advance(5_000)
    world().driver.always('everything', fail('not-sent'))
    expect(await world().until(waiting)).toBeInstanceOf(StoreUnavailableError)
  })

  it('is found out by who waited too shortly for the first in line to ask again', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s', heartbeat: false })
    const first = other.locks.acquire('job', { wait: '8s' }).catch((e: unknown) => e)
    await world().time.advance(1_000)
    world().driver.forget()
    // The first one sleeps. What it knows is older than these questions: while one try is in the air, the rest share one.
    world().driver.always('acquire', delay(world().time, 1, 1))
    const healthy = Array.from({ length: 5 }, () => other.locks.acquire('job', { wait: 200 }))
    expect(await world().until(Promise.all(healthy))).toEqual([null, null, null, null, null])
    expect(world().driver.count('acquire')).toBe(2)
    world().driver.heal()
    world().driver.always('everything', fail('not-sent'))
    const down = other.locks.acquire('job', { wait: 200 }).catch((e: unknown) => e)
    expect(await world().until(down)).toBeInstanceOf(StoreUnavailableError)
    world().driver.heal()
    expect(await world().until(first)).toBeNull()
  })

  it('without end goes on asking, not too often, and gets the key when the store is back', async () => {
    const { locks } = world().worker()
    world().driver.always('everything', fail('not-sent'))
    const waiting = locks.acquire('job', { wait: Infinity })
    await world().time.advance(600_000)
    expect(await soFar(waiting)).toBe('pending')
    expect(world().driver.count('acquire')).toBeGreaterThan(400)
    expect(world().driver.count('acquire')).toBeLessThan(1_500)
    world().driver.heal()
    await world().time.advance(1_500)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('for good is not waited out', async () => {
    const { locks } = world().worker()
    world().driver.always('everything', fail('unusable'))
    await expect(world().until(locks.acquire('job', { wait: Infinity }))).rejects.toMatchObject({
      code: 'STORE_UNUSABLE',
    })
    expect(world().time.now).toBe(0)
  })
})

describe('a wait in a service that is closed', () => {
  it('rejects with a ClosedError, first in line or not', async () => {
    const one = world().worker()
    await one.hold('job')
    const waits = [0, 1, 2].map(() => one.locks.acquire('job', { wait: Infinity }).catch((e: unknown) => e))
    await world().time.advance(100)
    await world().until(one.locks.close())
    for (const outcome of await Promise.all(waits)) expect(outcome).toBeInstanceOf(ClosedError)
  })

  it('gives back what is granted meanwhile', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const slow = gate()
    world().driver.plan('acquire', slow.after)
    const waiting = one.locks.acquire('job', { wait: Infinity, ttl: '24h' }).catch((e: unknown) => e)
    await rest()
    const closing = one.locks.close()
    await rest()
    slow.letGo()
    await world().until(closing)
    expect(await waiting).toBeInstanceOf(ClosedError)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })
})
