import { ClosedError, LeaseLostError, LockService } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { cutAnswer, fail, hang } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld, soFar } from './world.ts'

const world = eachWorld()

describe('close', () => {
  it('loses the leases that are held, and gives them back', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const leases = [await one.hold('a'), await one.hold('b')]
    const reasons: unknown[] = []
    for (const { signal } of leases) signal.addEventListener('abort', () => reasons.push(signal.reason))
    await world().until(one.locks.close())
    for (const lease of leases) {
      expect(lease.isHeld()).toBe(false)
      expect(lease.lossReason).toBe('closed')
    }
    expect(reasons).toHaveLength(2)
    for (const reason of reasons) expect(reason).toBeInstanceOf(LeaseLostError)
    expect(await world().until(other.locks.list())).toEqual([])
    // Both in one call.
    expect(world().driver.count('release')).toBe(1)
  })

  it('is idempotent, also from within what it causes', async () => {
    const { locks, hold } = world().worker()
    const lease = await hold('job')
    let inner: Promise<void> | undefined
    lease.signal.addEventListener('abort', () => (inner = locks.close()))
    await world().until(Promise.all([locks.close(), locks.close()]))
    await locks.close()
    await inner
    expect(world().driver.count('release')).toBe(1)
  })

  it('refuses everything afterwards, also from within what it causes', async () => {
    const { locks, hold } = world().worker()
    const lease = await hold('job')
    let inner: Promise<unknown> = Promise.resolve()
    lease.signal.addEventListener(
      'abort',
      () => (inner = locks.acquire('next').catch((error: unknown) => error)),
    )
    await world().until(locks.close())
    expect(await inner).toBeInstanceOf(ClosedError)
    world().driver.forget()
    const calls: (() => Promise<unknown>)[] = [
      () => locks.acquire('job'),
      () => locks.acquire('job', { wait: Infinity }),
      () => locks.runExclusive('job', () => {}),
      () => locks.runExclusively('job', () => {}),
      locks.exclusive('job', () => {}),
      () => locks.peek('job'),
      () => locks.list(),
      () => locks.forceRelease('job'),
      () => locks.forceRelease('job', { fence: 5 }),
    ]
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'CLOSED' })
    expect(world().driver.count()).toBe(0)
  })

  it('at once after it was made, with nothing done, does nothing', async () => {
    const { locks } = world().worker()
    await locks.close()
    expect(world().driver.count()).toBe(0)
  })

  it('is what the end of a scope does', async () => {
    let lease
    {
      await using locks = new LockService({ driver: world().driver })
      lease = await locks.acquire('job')
    }
    expect(lease?.lossReason).toBe('closed')
  })

  it('while a function runs under a lease does not wait for it', async () => {
    const { locks } = world().worker()
    const running = locks.runExclusive(
      'job',
      ({ signal }) =>
        new Promise((done) => {
          signal.addEventListener('abort', () => done('stopped'))
        }),
    )
    await rest()
    await world().until(locks.close())
    expect(await world().until(running)).toEqual({ acquired: true, result: 'stopped', lost: true })
  })

  it('from within such a function does not wait for itself', async () => {
    const { locks } = world().worker()
    const outcome = await world().until(locks.runExclusive('job', () => locks.close()))
    expect(outcome).toMatchObject({ acquired: true, lost: true })
  })

  it('with the store down ends within about one request timeout, and leaves nothing', async () => {
    for (const treatment of [hang, fail('not-sent'), fail('retry'), cutAnswer]) {
      const { clock, locks, hold } = world().worker({ requestTimeout: '2s' })
      await hold(`job ${Math.random()}`)
      world().driver.always('everything', treatment)
      const outcomes = [
        locks.acquire('a'),
        locks.acquire('b', { wait: Infinity }),
        locks.peek('a'),
        locks.list(),
        locks.forceRelease('a'),
      ].map((call) =>
        call.then(
          () => 'done',
          () => 'failed',
        ),
      )
      await world().time.advance(100)
      const startedAt = world().time.now
      await world().until(locks.close())
      expect(world().time.now - startedAt).toBeLessThanOrEqual(4_100)
      expect(world().time.timers(clock)).toEqual([])
      await world().until(Promise.all(outcomes))
      world().driver.forget()
      await world().time.advance(60_000)
      expect(world().driver.count()).toBe(0)
      world().driver.heal()
    }
  })

  it('while tokens of abandoned acquires are still being released leaves nothing that goes on', async () => {
    const { clock, locks } = world().worker({ requestTimeout: '1s' })
    world().driver.always('everything', fail('unknown'))
    for (let index = 0; index < 20; index++) {
      await world().until(locks.acquire(`k${index}`).catch(() => {}))
    }
    await world().time.advance(950)
    await world().until(locks.close())
    expect(world().time.timers(clock)).toEqual([])
    world().driver.forget()
    await world().time.advance(10_000)
    expect(world().driver.count()).toBe(0)
  })

  it('while a lost lease is still being given back leaves nothing that goes on', async () => {
    const { clock, locks, hold } = world().worker({ ttl: '1s', requestTimeout: '2s' })
    const lease = await hold('job', { heartbeat: false })
    world().driver.always('everything', fail('not-sent'))
    await world().time.advance(1_500)
    const releasing = lease.release()
    await world().time.advance(5)
    await world().until(locks.close())
    expect(await soFar(releasing)).toBe('unknown')
    expect(world().time.timers(clock)).toEqual([])
  })

  it('does not begin anew what was given up in the air', async () => {
    const { locks, hold } = world().worker({ requestTimeout: '1s' })
    const lease = await hold('job')
    world().driver.always('release', async () => {
      await world().time.sleep(1_500)
      throw new Error('ETIMEDOUT')
    })
    await world().until(lease.release())
    await world().until((await hold('other')).release())
    const startedAt = world().time.now
    await world().time.advance(100)
    await world().until(locks.close())
    expect(world().time.now - startedAt).toBeLessThan(1_100)
    world().driver.forget()
    await world().time.advance(10_000)
    expect(world().driver.count()).toBe(0)
  })

  it('while an acquire that was cancelled is still in the air gives its grant back', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const controller = new AbortController()
    world().driver.plan('acquire', async (pass) => {
      await world().time.sleep(300)
      return pass()
    })
    const cancelled = one.locks
      .acquire('job', { signal: controller.signal, ttl: '24h' })
      .catch(() => 'cancelled')
    await rest()
    controller.abort()
    await world().until(one.locks.close())
    expect(await cancelled).toBe('cancelled')
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })
})

describe('records of released keys', () => {
  it('go as fast as they come: nothing piles up', async () => {
    const { locks } = world().worker({ retention: '10s' })
    for (let second = 0; second < 60; second++) {
      const leases = await world().until(
        Promise.all(Array.from({ length: 500 }, (_, index) => locks.acquire(`once ${second} ${index}`))),
      )
      await world().until(Promise.all(leases.map(async (lease) => lease?.release())))
      await world().time.advance(1_000)
    }
    await world().time.advance(30_000)
    const last = await world().until(locks.acquire('last'))
    await world().until(Promise.resolve(last?.release()))
    await world().time.advance(1)
    const { locks: store } = world().driver.open('default')
    const left = await store.purge(
      { retentionMs: 10_000, limit: 1_000_000 },
      { attempt: 1, lockedRows: 'skip' },
    )
    expect(left).toBe(0)
  })

  it('are forgotten now and then while keys are being released, and not after the close', async () => {
    const { locks, hold } = world().worker({ retention: '30s' })
    for (let second = 0; second < 120; second++) {
      await world().until((await hold(`k${second}`)).release())
      await world().time.advance(1_000)
    }
    const purges = world().driver.count('purge')
    expect(purges).toBeGreaterThanOrEqual(4)
    expect(purges).toBeLessThanOrEqual(12)
    await hold('last')
    await world().time.advance(60_000)
    world().driver.forget()
    await world().until(locks.close())
    expect(world().driver.count('purge')).toBe(0)
  })

  it.each([
    ['fails', fail('unusable')],
    ['hangs', hang],
    [
      'throws at once',
      () => {
        throw new TypeError('x is not a function')
      },
    ],
  ])('whose purge %s harm nobody', async (_how, treatment) => {
    const { hold } = world().worker({ retention: 0 })
    world().driver.always('purge', treatment)
    for (let index = 0; index < 3; index++) {
      await world().time.advance(15_000)
      expect(await world().until((await hold('job')).release())).toBe('released')
    }
    expect(world().driver.count('purge')).toBeGreaterThan(0)
  })
})
