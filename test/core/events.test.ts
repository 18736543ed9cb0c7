import { channel } from 'node:diagnostics_channel'
import { inspect } from 'node:util'
import { type LeaseholdEventName, onEvent } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { publish } from '../../src/core/channels.ts'
import { fail } from './treatments.ts'
import { rest } from './virtual-time.ts'
import { eachWorld } from './world.ts'

const world = eachWorld()

const names: readonly LeaseholdEventName[] = [
  'leasehold:acquire',
  'leasehold:release',
  'leasehold:refresh',
  'leasehold:refresh-failed',
  'leasehold:lost',
  'leasehold:max-lifetime',
  'leasehold:deaf',
  'leasehold:force-release',
]

let events: { name: string; message: unknown }[]
let tokens: Set<string>
let unsubscribe: (() => void)[]

beforeEach(() => {
  events = []
  tokens = new Set()
  unsubscribe = names.map((name) => onEvent(name, (message) => events.push({ name, message })))
})

afterEach(() => {
  for (const off of unsubscribe) off()
  for (const { items } of world().driver.calls)
    for (const { token } of items) if (token !== undefined) tokens.add(token)
  // In no message, however deep, errors and their causes included.
  for (const token of tokens) expect(deepText(events)).not.toContain(token)
})

function deepText(value: unknown, seen = new Set<unknown>()): string {
  if (typeof value !== 'object' || value === null) return String(value)
  if (seen.has(value)) return ''
  seen.add(value)
  return Reflect.ownKeys(value)
    .map((key) => `${String(key)}: ${deepText(Reflect.get(value, key), seen)}`)
    .join('\n')
}

const named = (name: LeaseholdEventName) =>
  events.filter((event) => event.name === name).map(({ message }) => message)

describe('the channels', () => {
  it('tell of an acquire and a release, once each', async () => {
    const { hold } = world().worker({ namespace: 'prod' })
    world().driver.plan('acquire', async (pass) => {
      await world().time.sleep(30)
      return pass()
    })
    const lease = await hold('job')
    await world().time.advance(500)
    await world().until(lease.release())
    await world().until(lease.release())
    const { fence } = lease
    expect(events).toEqual([
      {
        name: 'leasehold:acquire',
        message: { namespace: 'prod', key: 'job', outcome: 'granted', waitedMs: 30, fence },
      },
      {
        name: 'leasehold:release',
        message: { namespace: 'prod', key: 'job', fence, outcome: 'released', heldMs: 530 },
      },
    ])
  })

  it('tell of acquires that came to nothing, and why', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    events.length = 0
    await world().until(other.locks.acquire('job'))
    await world().until(other.locks.acquire('job', { wait: 100 }))
    const controller = new AbortController()
    const cancelled = other.locks
      .acquire('job', { wait: Infinity, signal: controller.signal })
      .catch(() => {})
    await world().time.advance(100)
    controller.abort()
    await cancelled
    world().driver.always('acquire', fail('not-sent'))
    await world().until(other.locks.acquire('job').catch(() => {}))
    expect(named('leasehold:acquire')).toMatchObject([
      { outcome: 'held', waitedMs: 0 },
      { outcome: 'held', waitedMs: 100 },
      { outcome: 'cancelled', waitedMs: 100 },
      { outcome: 'failed', error: { code: 'STORE_UNAVAILABLE' } },
    ])
  })

  it('tell of renewals, of those that failed, and of a loss, once each', async () => {
    const { hold } = world().worker({ ttl: '3s' })
    const lease = await hold('job')
    await world().time.advance(1_100)
    expect(named('leasehold:refresh')).toEqual([
      { namespace: 'default', key: 'job', fence: lease.fence, remainingMs: 2_970 },
    ])
    world().driver.always('refresh', fail('not-sent'))
    await world().time.advance(10_000)
    const failures = named('leasehold:refresh-failed') as { attempt: number; remainingMs: number }[]
    expect(failures.length).toBeGreaterThan(5)
    expect(failures.map(({ attempt }) => attempt)).toEqual(failures.map((_, index) => index + 1))
    expect(named('leasehold:lost')).toMatchObject([{ key: 'job', reason: 'expired', fence: lease.fence }])
    await world().until(lease.release())
    expect(named('leasehold:lost')).toHaveLength(1)
    expect(named('leasehold:release')).toMatchObject([{ outcome: 'already-lost' }])
  })

  it('tell of a revoked lease: the request, the loss, the confirmation', async () => {
    const [one, operator] = [world().worker({ ttl: '3s' }), world().worker()]
    const lease = await one.hold('job')
    events.length = 0
    await world().until(operator.locks.forceRelease('job'))
    await world().time.advance(2_000)
    expect(events).toMatchObject([
      { name: 'leasehold:force-release', message: { key: 'job', fence: lease.fence, outcome: 'revoked' } },
      { name: 'leasehold:lost', message: { reason: 'revoked' } },
      { name: 'leasehold:release', message: { key: 'job' } },
    ])
  })

  it('tell of a deaf push channel', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job')
    world().driver.always('listen', fail('unusable'))
    await world().until(other.locks.acquire('job', { wait: 100 }))
    expect(named('leasehold:deaf')).toMatchObject([{ namespace: 'default', error: { kind: 'unusable' } }])
  })

  it('tell of the leases that a closing service loses', async () => {
    const { locks, hold } = world().worker()
    await hold('a')
    await hold('b')
    events.length = 0
    await world().until(locks.close())
    expect(named('leasehold:lost')).toMatchObject([
      { key: 'a', reason: 'closed' },
      { key: 'b', reason: 'closed' },
    ])
    expect(named('leasehold:release')).toHaveLength(2)
  })

  it('survive a listener that throws: the lease is lost and released all the same', async () => {
    const errors: unknown[] = []
    const collect = (error: unknown) => errors.push(error)
    // Node reports it as an uncaught exception of the listener's own.
    const others = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.on('uncaughtException', collect)
    const off = names.map((name) =>
      onEvent(name, () => {
        throw new Error(`listener of ${name}`)
      }),
    )
    try {
      const [one, other] = [world().worker({ ttl: '1s' }), world().worker()]
      const lease = await one.hold('job')
      let aborted = false
      lease.signal.addEventListener('abort', () => (aborted = true))
      await world().until(other.locks.forceRelease('job'))
      await world().time.advance(500)
      expect(aborted).toBe(true)
      expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
      await rest()
    } finally {
      for (const stop of off) stop()
      process.off('uncaughtException', collect)
      for (const listener of others) process.on('uncaughtException', listener)
    }
    expect(errors.length).toBeGreaterThan(3)
  })

  it('cost nothing where nobody listens: the message is not even made', () => {
    let made = 0
    const make = () => {
      made++
      return { namespace: 'n', error: null }
    }
    for (const off of unsubscribe) off()
    publish('leasehold:deaf', make)
    expect(made).toBe(0)
    const off = onEvent('leasehold:deaf', () => {})
    publish('leasehold:deaf', make)
    off()
    publish('leasehold:deaf', make)
    expect(made).toBe(1)
    expect(channel('leasehold:deaf').hasSubscribers).toBe(false)
  })
})

describe('a token', () => {
  it('is not shown where a lease is logged', async () => {
    const { hold } = world().worker()
    const lease = await hold('job')
    expect(lease.token).toMatch(/^[\w-]{24}$/)
    for (const text of [inspect(lease, { depth: 10 }), JSON.stringify(lease), JSON.stringify({ ...lease })]) {
      expect(text).toContain('job')
      expect(text).not.toContain(lease.token)
    }
  })

  it('appears in no error, and in nothing that operators see', async () => {
    const [one, other] = [world().worker({ ttl: '1s' }), world().worker()]
    const lease = await one.hold('job', { label: 'import' })
    const shown: unknown[] = [
      await world().until(other.locks.peek('job')),
      await world().until(other.locks.list()),
      await world().until(other.locks.forceRelease('job', { immediate: true })),
    ]
    await world().time.advance(2_000)
    const caught = (call: () => unknown) => {
      try {
        return call()
      } catch (error) {
        return error
      }
    }
    shown.push(
      caught(() => lease.assertHeld()),
      lease.signal.reason,
      await lease.extend('1m').catch((error: unknown) => error),
      events,
    )
    expect(deepText(shown)).not.toContain(lease.token)
    for (const { items } of world().driver.of('acquire')) {
      expect((items[0] as { holder?: string }).holder).not.toContain(items[0]?.token)
    }
  })
})
