import type { NoticeChannel, NoticeListener } from 'leasehold/driver'
import { onEvent } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WakeUps } from '../../src/core/wake-ups.ts'
import { fail, hang } from './treatments.ts'
import { VirtualTime, type WorkerClock } from './virtual-time.ts'
import { eachWorld, soFar } from './world.ts'

/** A push channel as the test wants it. */
interface Line {
  readonly listener: NoticeListener
  probes: number
  isClosed: boolean
}

let time: VirtualTime
let clock: WorkerClock
let lines: Line[]
let wakes: (string | null)[]
let deafened: unknown[]
let wakeUps: WakeUps
let stopListening: () => void
/** What the store does about a subscription, and about a probe. */
let onListen: () => Promise<void>
let onProbe: () => Promise<void>

beforeEach(() => {
  time = new VirtualTime()
  clock = time.worker()
  lines = []
  wakes = []
  deafened = []
  onListen = () => Promise.resolve()
  onProbe = () => Promise.resolve()
  stopListening = onEvent('leasehold:deaf', ({ error }) => deafened.push(error))
  wakeUps = new WakeUps({
    clock,
    namespace: 'test',
    requestTimeoutMs: 5_000,
    onWake: (key) => wakes.push(key),
    session: {
      locks: undefined as never,
      tasks: undefined as never,
      close: () => Promise.resolve(),
      listen: async (listener): Promise<NoticeChannel> => {
        await onListen()
        const line: Line = { listener, probes: 0, isClosed: false }
        lines.push(line)
        return {
          probe: () => {
            line.probes++
            return onProbe()
          },
          close: () => {
            line.isClosed = true
            return Promise.resolve()
          },
        }
      },
    },
  })
})

afterEach(async () => {
  stopListening()
  await time.until(wakeUps.close())
  expect(lines.every(({ isClosed }) => isClosed)).toBe(true)
  expect(time.timers(clock)).toEqual([])
})

const line = (index: number): Line => {
  const found = lines[index]
  if (found === undefined) throw new Error(`Only ${lines.length} channels were opened.`)
  return found
}
const openLines = () => lines.filter(({ isClosed }) => !isClosed).length

describe('the push channel', () => {
  it('is opened when the first waiter comes, once for all, and tested before it is trusted', async () => {
    expect(lines).toHaveLength(0)
    let answerProbe = (): void => {}
    onProbe = () => new Promise((resolve) => (answerProbe = resolve))
    wakeUps.enter()
    wakeUps.enter()
    await time.advance(0)
    expect(lines).toHaveLength(1)
    expect(line(0).probes).toBe(1)
    expect(wakeUps.live).toBe(false)
    answerProbe()
    await time.advance(0)
    expect(wakeUps.live).toBe(true)
    // Who polled meanwhile has to look once more.
    expect(wakes).toEqual([null])
  })

  it('passes on which key was released', async () => {
    wakeUps.enter()
    await time.advance(0)
    line(0).listener.onNotice({ kind: 'released', key: 'a' })
    line(0).listener.onNotice({ kind: 'control', version: 3 })
    expect(wakes).toEqual([null, 'a'])
    // Its connection was away: anything may have been released.
    line(0).listener.onNotice({ kind: 'missed' })
    expect(wakes).toEqual([null, 'a', null])
  })

  it('is closed soon after the last waiter left, and not while one is there', async () => {
    wakeUps.enter()
    wakeUps.enter()
    await time.advance(0)
    wakeUps.leave()
    await time.advance(60_000)
    expect(openLines()).toBe(1)
    wakeUps.leave()
    await time.advance(1_900)
    expect(openLines()).toBe(1)
    await time.advance(200)
    expect(openLines()).toBe(0)
    expect(time.timers(clock)).toEqual([])
    expect(wakeUps.live).toBe(false)
  })

  it('that lingers is used by the next waiter', async () => {
    for (let round = 0; round < 10; round++) {
      wakeUps.enter()
      await time.advance(500)
      wakeUps.leave()
      await time.advance(1_500)
    }
    expect(lines).toHaveLength(1)
  })

  it('is opened anew for a waiter after it was closed', async () => {
    wakeUps.enter()
    await time.advance(0)
    wakeUps.leave()
    await time.advance(10_000)
    wakeUps.enter()
    await time.advance(0)
    expect(openLines()).toBe(1)
    expect(lines).toHaveLength(2)
    expect(wakeUps.live).toBe(true)
  })

  it('that comes when its waiter has gone already is closed again', async () => {
    let letIn = (): void => {}
    onListen = () => new Promise((resolve) => (letIn = resolve))
    wakeUps.enter()
    wakeUps.leave()
    await time.advance(100)
    letIn()
    await time.advance(5_000)
    expect(lines).toHaveLength(1)
    expect(openLines()).toBe(0)
  })

  it('is tested again and again while somebody waits', async () => {
    wakeUps.enter()
    await time.advance(61_000)
    expect(line(0).probes).toBe(1 + 4)
  })

  it('is tested as often when the waiters change all the time', async () => {
    wakeUps.enter()
    for (let second = 0; second < 120; second++) {
      await time.advance(500)
      wakeUps.leave()
      wakeUps.enter()
      await time.advance(500)
    }
    expect(line(0).probes).toBeGreaterThanOrEqual(7)
    expect(line(0).probes).toBeLessThanOrEqual(10)
  })

  it('does not keep the process alive by itself', async () => {
    wakeUps.enter()
    await time.advance(100)
    expect(time.timers(clock).every(({ keepAlive }) => !keepAlive)).toBe(true)
  })
})

describe('a deaf channel', () => {
  it('is told, closed and replaced: waiters look at once, and poll until the new one is proven', async () => {
    wakeUps.enter()
    await time.advance(0)
    line(0).listener.onDeaf(new Error('terminated'))
    expect(wakeUps.live).toBe(false)
    expect(line(0).isClosed).toBe(true)
    expect(wakes).toEqual([null, null])
    expect(deafened).toHaveLength(1)
    await time.advance(600)
    expect(wakeUps.live).toBe(true)
    expect(lines).toHaveLength(2)
    expect(wakes).toEqual([null, null, null])
  })

  it.each([
    ['fails', () => Promise.reject(new Error('no answer'))],
    ['hangs', () => new Promise<void>(() => {})],
  ])('that gives no sign is found by a test that %s', async (_how, probe) => {
    wakeUps.enter()
    await time.advance(0)
    onProbe = probe
    await time.advance(21_000)
    expect(deafened.length).toBeGreaterThanOrEqual(1)
    expect(wakeUps.live).toBe(false)
    onProbe = () => Promise.resolve()
    await time.advance(40_000)
    expect(wakeUps.live).toBe(true)
    expect(openLines()).toBe(1)
  })

  it('from the beginning (behind a transaction pooler) is never trusted, and tried ever more rarely', async () => {
    onProbe = () => new Promise<void>(() => {})
    wakeUps.enter()
    await time.advance(600_000)
    expect(wakeUps.live).toBe(false)
    expect(lines.length).toBeGreaterThan(10)
    expect(lines.length).toBeLessThan(40)
    expect(openLines()).toBeLessThanOrEqual(1)
  })

  it('that cannot be opened at all is tried ever more rarely as well', async () => {
    onListen = () => Promise.reject(new Error('no such thing'))
    wakeUps.enter()
    await time.advance(600_000)
    expect(deafened.length).toBeGreaterThan(10)
    expect(deafened.length).toBeLessThan(40)
  })

  it('that hangs while it is opened is given up, and closed if it comes after all', async () => {
    let letIn = (): void => {}
    onListen = () => new Promise((resolve) => (letIn = resolve))
    wakeUps.enter()
    await time.advance(5_100)
    expect(deafened).toHaveLength(1)
    const letFirstIn = letIn
    onListen = () => Promise.resolve()
    await time.advance(1_000)
    expect(wakeUps.live).toBe(true)
    letFirstIn()
    await time.advance(0)
    expect(lines).toHaveLength(2)
    expect(openLines()).toBe(1)
    expect(wakeUps.live).toBe(true)
  })

  it('that goes deaf before it was even handed over is not trusted', async () => {
    onProbe = () => new Promise<void>(() => {})
    wakeUps.enter()
    await time.advance(0)
    line(0).listener.onDeaf(new Error('terminated'))
    expect(deafened).toHaveLength(1)
    onProbe = () => Promise.resolve()
    await time.advance(600)
    expect(wakeUps.live).toBe(true)
    expect(openLines()).toBe(1)
  })

  it('is not opened again when nobody waits any more', async () => {
    wakeUps.enter()
    await time.advance(0)
    line(0).listener.onDeaf(new Error('terminated'))
    wakeUps.leave()
    await time.advance(60_000)
    expect(lines).toHaveLength(1)
    expect(time.timers(clock)).toEqual([])
    wakeUps.enter()
    await time.advance(0)
    expect(wakeUps.live).toBe(true)
  })

  it('that complains twice, or after it was replaced, is heard once', async () => {
    wakeUps.enter()
    await time.advance(0)
    const first = line(0)
    first.listener.onDeaf(new Error('terminated'))
    first.listener.onDeaf(new Error('again'))
    await time.advance(600)
    first.listener.onDeaf(new Error('and again'))
    expect(deafened).toHaveLength(1)
    expect(wakeUps.live).toBe(true)
  })
})

describe('closing', () => {
  it('closes an open channel, and one that was still being opened', async () => {
    let letIn = (): void => {}
    onListen = () => new Promise((resolve) => (letIn = resolve))
    wakeUps.enter()
    const closing = wakeUps.close()
    letIn()
    await time.until(closing)
    expect(openLines()).toBe(0)
  })

  it('does not wait for ever for one that hangs, and closes it if it comes after all', async () => {
    let letIn = (): void => {}
    onListen = () => new Promise((resolve) => (letIn = resolve))
    wakeUps.enter()
    const closing = wakeUps.close()
    await time.advance(5_000)
    expect(await soFar(closing)).toBeUndefined()
    letIn()
    await time.advance(0)
    expect(openLines()).toBe(0)
  })

  it('opens nothing any more', async () => {
    await time.until(wakeUps.close())
    wakeUps.enter()
    await time.advance(60_000)
    expect(lines).toHaveLength(0)
  })
})

describe('waiters of a service', () => {
  const world = eachWorld()

  it('poll at their step where push is not to be had', async () => {
    const [one, other] = [world().worker(), world().worker()]
    await one.hold('job', { ttl: '60s' })
    world().driver.always('listen', fail('unusable'))
    world().driver.forget()
    expect(await world().until(other.locks.acquire('job', { wait: '10s', waitStep: '1s' }))).toBeNull()
    const tries = world().driver.count('acquire')
    expect(tries).toBeGreaterThanOrEqual(9)
    // A channel that turned out deaf makes them look once more.
    expect(tries).toBeLessThanOrEqual(20)
  })

  it('poll while the subscription hangs, and end when they have to', async () => {
    const [one, other] = [world().worker(), world().worker()]
    const lease = await one.hold('job')
    world().driver.always('listen', hang)
    const startedAt = world().time.now
    expect(await world().until(other.locks.acquire('job', { wait: 200 }))).toBeNull()
    expect(world().time.now - startedAt).toBe(200)
    const waiting = other.locks.acquire('job', { wait: Infinity, waitStep: '500ms' })
    await world().time.advance(3_000)
    void lease.release()
    await world().time.advance(700)
    expect(await soFar(waiting)).not.toBe('pending')
  })

  it('subscribe to nothing in a driver that has no push', async () => {
    // The world's driver has push: a driver of its own for this one.
    const { watchedDriver } = await import('./watched-driver.ts')
    const driver = watchedDriver({ now: world().time.storeNow, push: false })
    const [one, other] = [world().worker({ driver }), world().worker({ driver })]
    const lease = await one.hold('job')
    const waiting = other.locks.acquire('job', { wait: Infinity, waitStep: '100ms' })
    await world().time.advance(1_000)
    expect(driver.count('listen')).toBe(0)
    void lease.release()
    await world().time.advance(130)
    expect(await soFar(waiting)).not.toBe('pending')
  })
})
