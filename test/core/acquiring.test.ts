import { StoreUnavailableError, StoreUnusableError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { answer, cutAnswer, delay, fail, gate, hang, loseAnswer } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld, soFar } from './world.ts'

const world = eachWorld()

/** Waits in virtual time and tells the error, or fails. */
async function refusal(question: Promise<unknown> | (() => Promise<unknown>)): Promise<unknown> {
  const asked = typeof question === 'function' ? question() : question
  return world().until(
    asked.then(
      () => {
        throw new Error('It was not refused.')
      },
      (error: unknown) => error,
    ),
  )
}

describe('an answer', () => {
  it('of null means: held by another, and costs one call', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    world().driver.forget()
    expect(await world().until(other.locks.acquire('job'))).toBeNull()
    expect(world().driver.count()).toBe(1)
  })

  it.each([
    ['refuses connections', fail('not-sent'), 'no'],
    ['cuts the connection', fail('unknown'), 'unknown'],
    ['does not answer', hang, 'unknown'],
    ['throws something', () => Promise.reject(new Error('EPIPE')), 'unknown'],
    ['is in deadlock all the time', fail('retry'), 'no'],
  ] as const)('of a store that %s is an exception, never null (N19)', async (_how, treatment, applied) => {
    const { locks } = world().worker()
    world().driver.always('everything', treatment)
    const error = await refusal(locks.acquire('job'))
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', applied })
    expect((error as Error).cause).toMatchObject({ code: 'DRIVER_FAULT' })
    // Looking is no better informed.
    for (const question of [() => locks.peek('job'), () => locks.list(), () => locks.forceRelease('job')]) {
      expect(await refusal(question)).toBeInstanceOf(StoreUnavailableError)
    }
  })

  it('comes within the request timeout, whatever the store does', async () => {
    const { locks } = world().worker({ requestTimeout: '2s' })
    world().driver.always('everything', hang)
    for (const question of [
      () => locks.acquire('job'),
      () => locks.peek('job'),
      () => locks.list(),
      () => locks.forceRelease('job'),
    ]) {
      const startedAt = world().time.now
      await refusal(question)
      expect(world().time.now - startedAt).toBeLessThanOrEqual(2_000)
    }
  })

  it.each(['unusable', 'bad-item'] as const)('of a store that cannot serve says so: %s', async (kind) => {
    const { locks } = world().worker()
    world().driver.always('everything', fail(kind))
    for (const question of [
      () => locks.acquire('job'),
      () => locks.acquire('job', { wait: '10s' }),
      () => locks.peek('job'),
      () => locks.list(),
    ]) {
      expect(await refusal(question)).toBeInstanceOf(StoreUnusableError)
    }
    expect(world().time.now).toBeLessThan(1_000)
  })

  it('of "failed" concerns that key alone', async () => {
    const { locks } = world().worker()
    world().driver.always('acquire', async (pass, { items }) => {
      const answers = (await pass()) as object[]
      return answers.map((one, index) =>
        items[index]?.key === 'bad' ? { outcome: 'failed', error: new Error('odd type') } : one,
      )
    })
    const results = await world().until(
      Promise.allSettled(['a', 'bad', 'c'].map((key) => locks.acquire(key))),
    )
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  it('names the key, cut to a readable length', async () => {
    const { locks } = world().worker()
    world().driver.always('everything', fail('not-sent'))
    const key = `long\n${'x'.repeat(10_000)}`
    for (const question of [() => locks.acquire(key), () => locks.peek(key), () => locks.forceRelease(key)]) {
      const { message } = (await refusal(question)) as Error
      expect(message).toContain('long\\nxxx')
      expect(message.length).toBeLessThan(500)
    }
  })
})

describe('callers that ask for one key at once and will not wait', () => {
  it('are answered by one try: one has the key, the others are told that it is held', async () => {
    const { locks } = world().worker()
    const leases = await world().until(Promise.all(Array.from({ length: 1_000 }, () => locks.acquire('job'))))
    expect(leases.filter((lease) => lease !== null)).toHaveLength(1)
    expect(world().driver.count('acquire')).toBe(1)
  })

  it('are answered within the request timeout however many they are, by a slow store', async () => {
    const { locks } = world().worker({ requestTimeout: '2s' })
    world().driver.always('acquire', delay(world().time, 50, 50))
    for (let round = 0; round < 100; round++) {
      for (let index = 0; index < 10; index++) void locks.acquire('job').then((lease) => lease?.release())
      await world().time.advance(10)
    }
    expect(world().driver.count('acquire')).toBeLessThanOrEqual(15)
    expect(await world().until(locks.acquire('job', { wait: '1s' }))).not.toBeNull()
  })

  it('share an error as well, and each is asked for anew afterwards', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', fail('not-sent'))
    const outcomes = await world().until(Promise.allSettled([1, 2, 3].map(() => locks.acquire('job'))))
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(await world().until(locks.acquire('job'))).not.toBeNull()
  })

  it('are never told "held" by a try that was sent before they asked', async () => {
    const { locks, hold } = world().worker()
    const lease = await hold('job')
    const slow = gate()
    world().driver.plan('acquire', slow.after)
    const early = locks.acquire('job')
    await rest()
    // The store has said "held"; the answer travels. Meanwhile the key is released, and somebody asks.
    await world().until(lease.release())
    const late = locks.acquire('job')
    slow.letGo()
    expect(await world().until(early)).toBeNull()
    expect(await world().until(late)).not.toBeNull()
  })

  it('are not held up by one among them that is cancelled', async () => {
    const { locks } = world().worker()
    const controller = new AbortController()
    const cancelled = locks.acquire('job', { signal: controller.signal }).catch(() => 'cancelled')
    const other = locks.acquire('job')
    controller.abort()
    expect(await cancelled).toBe('cancelled')
    expect(await world().until(other)).toBeNull()
    await world().time.advance(10)
    expect(await world().until(locks.acquire('job'))).not.toBeNull()
  })
})

describe('a record that is locked elsewhere this instant', () => {
  it('is asked about again, and is neither held nor free meanwhile', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', answer({ outcome: 'busy' }), answer({ outcome: 'busy' }))
    expect(await world().until(locks.acquire('job'))).not.toBeNull()
    expect(
      world()
        .driver.of('acquire')
        .map(({ call }) => call?.lockedRows),
    ).toEqual(['skip', 'skip', 'wait'])
  })

  it('for all the time a request may take is an exception, without a storm of calls', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    world().driver.always('acquire', answer({ outcome: 'busy' }))
    const error = await refusal(locks.acquire('job'))
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', applied: 'no' })
    expect(world().time.now).toBeLessThanOrEqual(1_100)
    expect(world().driver.count('acquire')).toBeLessThan(100)
  })
})

describe('an acquire whose answer was lost', () => {
  it('is asked again under the same token, and is not blocked by itself (N7, M29)', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    world().driver.plan('acquire', loseAnswer)
    const lease = await world().until(locks.acquire('job', { wait: '5s' }))
    expect(lease?.isHeld()).toBe(true)
    const [first, second] = world().driver.of('acquire')
    expect(second?.items[0]?.token).toBe(first?.items[0]?.token)
    expect(lease?.token).toBe(first?.items[0]?.token)
    // Renewed by the second request, so it has all of its time (M29).
    expect(lease?.remainingMs).toBeGreaterThan(29_000)
  })

  it('is asked again at once where the connection was cut, on another one', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', cutAnswer)
    const lease = await world().until(locks.acquire('job', { wait: '5s' }))
    expect(lease?.isHeld()).toBe(true)
    expect(world().time.now).toBeLessThan(1_000)
    expect(world().driver.of('acquire')[1]?.call?.attempt).toBe(2)
  })

  it('leaves nothing behind when it is given up: its token is released at once', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    world().driver.plan('acquire', loseAnswer)
    await refusal(one.locks.acquire('job', { ttl: '24h' }))
    await world().time.advance(100)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('is cleaned up after however late it is carried out (N39)', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const late = gate()
    world().driver.plan('acquire', late.before)
    await refusal(one.locks.acquire('job', { ttl: '24h' }))
    await world().time.advance(60_000)
    late.letGo()
    await world().time.advance(100)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('is cleaned up after once more, if the client library sends it again over a new connection', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    let resend = (): Promise<unknown> => Promise.resolve()
    world().driver.plan('acquire', (pass) => {
      resend = pass
      return Promise.reject(new Error('ECONNRESET'))
    })
    await refusal(one.locks.acquire('job', { ttl: '24h' }))
    await world().time.advance(500)
    // Another holder in between, so that the store no longer remembers the token as spent.
    const between = await other.hold('job')
    await world().until(between.release())
    await resend()
    expect(await world().until(other.locks.acquire('job'))).toBeNull()
    await world().time.advance(1_000)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('cannot come back after the lease was released: the token is spent', async () => {
    const { hold, locks } = world().worker()
    let resend = (): Promise<unknown> => Promise.resolve()
    world().driver.plan('acquire', (pass) => {
      resend = pass
      return pass()
    })
    const lease = await hold('job')
    await world().until(lease.release())
    expect(await resend()).toEqual([{ outcome: 'spent' }])
    expect(await world().until(locks.acquire('job'))).not.toBeNull()
  })

  it('is not taken for ended by a "held" of the store to the second request', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const early = gate()
    const holder = await other.hold('job')
    world().driver.plan('acquire', early.before)
    // The first request waits in some pool; the second finds the key held; then the first is carried out after all.
    expect(await world().until(one.locks.acquire('job', { wait: '1.5s', ttl: '24h' }))).toBeNull()
    await world().until(holder.release())
    early.letGo()
    await world().time.advance(100)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('is granted a minute at most when asked again, and the whole ttl right afterwards', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    world().driver.plan('acquire', loseAnswer)
    const lease = await world().until(locks.acquire('job', { wait: '5s', ttl: '10m' }))
    expect(world().driver.of('acquire')[1]?.items[0]?.ttlMs).toBe(60_000)
    await world().time.advance(10)
    expect(lease?.remainingMs).toBeGreaterThan(590_000)
  })

  it.each([true, false])(
    'gets its whole ttl although the first request for it fails (heartbeat: %s)',
    async (heartbeat) => {
      const { locks } = world().worker({ requestTimeout: '1s' })
      world().driver.plan('acquire', fail('unknown'))
      world().driver.plan('refresh', hang, fail('not-sent'))
      const lease = await world().until(locks.acquire('job', { wait: '5s', ttl: '10m', heartbeat }))
      await world().time.advance(59_000)
      expect(lease?.isHeld()).toBe(true)
      expect(lease?.remainingMs).toBeGreaterThan(500_000)
    },
  )

  it('under a token that the store calls spent goes on with a new one, and the old one is still cleaned up', async () => {
    const [one, other] = [world().worker({ requestTimeout: '1s' }), world().worker()]
    const late = gate()
    world().driver.plan('acquire', late.before, answer({ outcome: 'spent' }))
    const lease = await world().until(one.locks.acquire('job', { wait: '5s', ttl: '24h' }))
    const tokens = world()
      .driver.of('acquire')
      .map(({ items }) => items[0]?.token)
    expect(tokens[1]).toBe(tokens[0])
    expect(tokens[2]).not.toBe(tokens[0])
    expect(await world().until(Promise.resolve(lease?.release()))).toBe('released')
    const next = await other.hold('job')
    await world().until(next.release())
    // The very first request comes in at last, and the store remembers another token as spent.
    late.letGo()
    await world().time.advance(2_000)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })
})

describe('a grant', () => {
  it('that comes at or past its own deadline is given back, and is no lease (N5, M8)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    world().driver.plan('acquire', delay(world().time, 0, 1_500))
    expect(await refusal(one.locks.acquire('job', { ttl: '500ms' }))).toBeInstanceOf(StoreUnavailableError)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('that comes too late is tried again while there is time to wait', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', delay(world().time, 0, 1_500))
    const lease = await world().until(locks.acquire('job', { ttl: '500ms', wait: '5s' }))
    expect(lease?.isHeld()).toBe(true)
    expect(lease?.remainingMs).toBeGreaterThan(400)
  })

  it('is trusted from before its request was sent: a slow answer shortens the trust', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', delay(world().time, 300, 300))
    const lease = await world().until(locks.acquire('job', { ttl: '2s', heartbeat: false }))
    expect(lease?.remainingMs).toBe(2_000 - 600 - 20)
  })

  it('is not trusted any longer than the store said, even if that is less than the ttl', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', answer({ outcome: 'granted', fence: 5, remainingMs: 700 }))
    const lease = await world().until(locks.acquire('job', { ttl: '60s', heartbeat: false }))
    expect(lease?.remainingMs).toBe(690)
  })

  it('without a sensible time is given back', async () => {
    const { locks } = world().worker()
    world().driver.plan('acquire', answer({ outcome: 'granted', fence: 5, remainingMs: NaN }))
    expect(await refusal(locks.acquire('job'))).toBeInstanceOf(StoreUnavailableError)
    expect(world().driver.count('release')).toBe(1)
  })
})

describe('an acquire that is cancelled', () => {
  const reason = new Error('not needed any more')

  it('before it begins sends nothing', async () => {
    const { locks } = world().worker()
    await expect(locks.acquire('job', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(world().driver.count()).toBe(0)
  })

  it('while its first request is in the air rejects at once, and gives the grant back (N39)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const controller = new AbortController()
    const slow = gate()
    world().driver.plan('acquire', slow.after)
    const asked = one.locks.acquire('job', { signal: controller.signal, ttl: '24h' })
    await rest()
    controller.abort(reason)
    expect(await soFar(asked)).toEqual({ error: reason })
    slow.letGo()
    await world().time.advance(100)
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
    expect(world().driver.count('refresh')).toBe(0)
  })

  it('in the very moment of the grant never leaks it (N39)', async () => {
    // The abort comes 0, 1, 2 … promise jobs after the store has granted.
    for (let jobs = 0; jobs < 30; jobs++) {
      const [one, other] = [world().worker(), world().worker()]
      const controller = new AbortController()
      const slow = gate()
      world().driver.plan('acquire', slow.after)
      const key = `job ${jobs}`
      const asked = one.locks
        .acquire(key, { signal: controller.signal, ttl: '24h' })
        .catch((error: unknown) => error)
      await rest()
      slow.letGo()
      for (let job = 0; job < jobs; job++) await Promise.resolve()
      controller.abort(reason)
      const outcome = await asked
      await world().time.advance(10)
      const next = await world().until(other.locks.acquire(key))
      if (outcome === reason) expect(next, `after ${jobs} jobs`).not.toBeNull()
      else expect(next, `after ${jobs} jobs`).toBeNull()
    }
  })

  it('while it waits rejects at once, and is not in the way of others (M10)', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    const controller = new AbortController()
    const cancelled = other.locks.acquire('job', { wait: Infinity, signal: controller.signal })
    const patient = other.locks.acquire('job', { wait: Infinity })
    await world().time.advance(1_000)
    controller.abort(reason)
    expect(await soFar(cancelled)).toEqual({ error: reason })
    await world().until(lease.release())
    expect(await world().until(patient)).not.toBeNull()
  })

  it('after it was granted is no longer concerned', async () => {
    const { locks } = world().worker()
    const controller = new AbortController()
    const lease = await world().until(locks.acquire('job', { signal: controller.signal }))
    controller.abort(reason)
    await world().time.advance(60_000)
    expect(lease?.isHeld()).toBe(true)
  })

  it('a hundred times with one signal causes no warning of a leak', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    const controller = new AbortController()
    const { signal } = controller
    const waits = Array.from({ length: 100 }, () =>
      other.locks.acquire('job', { wait: '10s', signal }).catch(() => null),
    )
    await world().time.advance(100)
    controller.abort(reason)
    await Promise.all(waits)
    await rest()
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it('leaves no listener on a signal that lives long', async () => {
    const { locks, hold } = world().worker()
    const controller = new AbortController()
    let listeners = 0
    const { signal } = controller
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)]
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--
      remove(...args)
    }
    await hold('held')
    for (let index = 0; index < 5; index++) {
      await world().until(locks.acquire(`k${index}`, { signal }))
      await world().until(locks.acquire('held', { signal, wait: 50 }))
    }
    expect(listeners).toBe(0)
  })
})
