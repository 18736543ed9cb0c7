import { describe, expect, it } from 'vitest'
import { Heartbeat, type Renewable } from '../../src/core/heartbeat.ts'
import { VirtualTime } from './virtual-time.ts'
import { eachWorld } from './world.ts'

const world = eachWorld()

describe('the heartbeat', () => {
  const beating = (everyMs: number, slackMs = 0) => {
    const time = new VirtualTime()
    const clock = time.worker()
    const heartbeat = new Heartbeat(clock)
    const member = (firstInMs = everyMs): Renewable & { beats: number[] } => {
      const one = {
        beats: [] as number[],
        renewalDueAt: clock.monotonic() + firstInMs,
        renewalSlackMs: slackMs,
        renew() {
          one.beats.push(time.now)
          one.renewalDueAt = clock.monotonic() + everyMs
        },
      }
      heartbeat.watch(one)
      return one
    }
    return { time, clock, heartbeat, member }
  }

  it('renews each member when it is due', async () => {
    const { time, member } = beating(1_000)
    const one = member()
    await time.advance(250)
    const other = member()
    await time.advance(2_500)
    expect(one.beats).toEqual([1_000, 2_000])
    expect(other.beats).toEqual([1_250, 2_250])
  })

  it('takes those along that are nearly due, so that they travel together from then on', async () => {
    const { time, member } = beating(1_000, 100)
    const members = [member()]
    for (let index = 0; index < 9; index++) {
      await time.advance(10)
      members.push(member())
    }
    await time.advance(5_000)
    const moments = new Set(members.flatMap(({ beats }) => beats))
    expect(moments.size).toBe(5)
  })

  it('has one timer for all, which does not keep the process alive, and none for nobody', async () => {
    const { time, clock, heartbeat, member } = beating(1_000)
    const members = Array.from({ length: 100 }, (_, index) => member(500 + index))
    expect(time.timers(clock)).toMatchObject([{ inMs: 500, keepAlive: false }])
    await time.advance(3_333)
    expect(time.timers(clock)).toHaveLength(1)
    for (const one of members) heartbeat.forget(one)
    expect(time.timers(clock)).toEqual([])
    expect(heartbeat.size).toBe(0)
  })

  it('looks again at a member that becomes due earlier', async () => {
    const { time, clock, heartbeat, member } = beating(10_000)
    const one = member()
    await time.advance(100)
    Object.assign(one, { renewalDueAt: clock.monotonic() + 50 })
    heartbeat.watch(one)
    await time.advance(60)
    expect(one.beats).toEqual([150])
  })

  it('leaves those alone whose renewal is in the air', async () => {
    const { time, member } = beating(1_000)
    const one = member()
    Object.assign(one, {
      renew() {
        one.beats.push(time.now)
        Object.assign(one, { renewalDueAt: Infinity })
      },
    })
    member()
    await time.advance(5_000)
    expect(one.beats).toEqual([1_000])
  })
})

describe('renewals of a service', () => {
  it('1,000 leases taken together cost four calls per interval at most', async () => {
    const { locks } = world().worker({ ttl: '30s' })
    await world().until(Promise.all(Array.from({ length: 1_000 }, (_, index) => locks.acquire(`k${index}`))))
    world().driver.forget()
    await world().time.advance(30_500)
    const refreshes = world().driver.of('refresh')
    expect(refreshes.reduce((sum, { items }) => sum + items.length, 0)).toBe(3_000)
    expect(refreshes.length).toBeLessThanOrEqual(3 * 4)
  })

  it('1,000 leases taken over a whole interval cost a dozen calls per interval, not a thousand', async () => {
    const { locks } = world().worker({ ttl: '30s' })
    for (let index = 0; index < 1_000; index++) {
      await world().until(locks.acquire(`k${index}`))
      await world().time.advance(10)
    }
    await world().time.advance(30_000)
    world().driver.forget()
    await world().time.advance(30_000)
    const refreshes = world().driver.of('refresh')
    expect(refreshes.reduce((sum, { items }) => sum + items.length, 0)).toBeGreaterThanOrEqual(3_000)
    expect(refreshes.length).toBeLessThanOrEqual(3 * 12)
  })

  it('are two timers however many leases are held: one for renewals, one for deadlines', async () => {
    const { clock, locks } = world().worker()
    await world().until(Promise.all(Array.from({ length: 500 }, (_, index) => locks.acquire(`k${index}`))))
    await world().time.advance(5_000)
    expect(world().time.timers(clock)).toHaveLength(2)
    expect(
      world()
        .time.timers(clock)
        .every(({ keepAlive }) => !keepAlive),
    ).toBe(true)
  })

  it('of a 40-day lease are not sent for days (N15)', async () => {
    const { hold } = world().worker()
    const lease = await hold('rarely', { ttl: '40d' })
    world().driver.forget()
    await world().time.advance(60_000)
    expect(world().driver.count()).toBe(0)
    expect(lease.isHeld()).toBe(true)
    expect(lease.remainingMs).toBeGreaterThan(39 * 86_400_000)
  })

  it('never happen with heartbeat: false, and the lease ends after one ttl', async () => {
    const { hold } = world().worker()
    const lease = await hold('once', { ttl: '1s', heartbeat: false })
    world().driver.forget()
    await world().time.advance(900)
    expect(lease.isHeld()).toBe(true)
    await world().time.advance(100)
    expect(lease.isHeld()).toBe(false)
    expect(lease.lossReason).toBe('expired')
    expect(world().driver.count('refresh')).toBe(0)
  })

  it('happen at the interval that was asked for, counted from when they were sent', async () => {
    const { hold } = world().worker()
    const { time, driver } = world()
    const lease = await hold('fast', { ttl: '10s', heartbeat: '9.7s' })
    driver.forget()
    const sentAt: number[] = []
    driver.always('refresh', async (pass) => {
      sentAt.push(time.now)
      const answer = await pass()
      await time.sleep(30)
      return answer
    })
    await time.advance(60_000)
    expect(lease.isHeld()).toBe(true)
    expect(sentAt).toEqual([9_700, 19_400, 29_100, 38_800, 48_500, 58_200])
  })
})
