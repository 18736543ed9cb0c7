import { FenceUnsafeError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { FenceLedger } from '../../src/core/fence-ledger.ts'
import { answer, loseAnswer } from './treatments.ts'
import { eachWorld } from './world.ts'

const world = eachWorld()

describe('a fence', () => {
  it('is greater than that of every earlier grant: after release, expiry, take-over and purge (N32, N33, N34)', async () => {
    const [one, other] = [world().worker({ retention: 0 }), world().worker()]
    const fences: number[] = []
    for (let round = 0; round < 20; round++) {
      const lease = await one.hold('job', { ttl: '1s', heartbeat: false })
      fences.push(lease.fence)
      if (round % 2 === 0) await world().until(lease.release())
      else await world().time.advance(1_000)
      const next = await other.hold('job')
      fences.push(next.fence)
      await world().until(next.release())
      await world().time.advance(20_000)
    }
    expect(fences).toEqual(fences.toSorted((a, b) => a - b))
    expect(new Set(fences).size).toBe(40)
    expect(fences.every((fence) => Number.isSafeInteger(fence))).toBe(true)
  })

  it('is kept when the same acquire is asked twice, since it is one grant', async () => {
    const { locks } = world().worker({ requestTimeout: '1s' })
    world().driver.plan('acquire', loseAnswer)
    const lease = await world().until(locks.acquire('job', { wait: '5s' }))
    const info = await world().until(locks.peek('job'))
    expect(lease?.fence).toBe(info?.fence)
  })

  it.each([
    ['lower than one seen before', 4],
    ['equal to one seen before', 5],
    ['no integer', 5.5],
    ['beyond what a number can tell apart', 2 ** 53],
    ['negative', -1],
    ['not a number', NaN],
    ['a text', '6' as unknown as number],
  ])('that is %s is refused, and the grant given back (N35)', async (_what, fence) => {
    const [one, other] = [world().worker(), world().worker()]
    world().driver.plan(
      'acquire',
      answer({ outcome: 'granted', fence: 5, remainingMs: 30_000 }),
      async (pass) => {
        const [granted] = (await pass()) as [object]
        return [{ ...granted, fence }]
      },
    )
    await one.hold('job')
    const error = await world().until(one.locks.acquire('job', { wait: '1s' }).catch((e: unknown) => e))
    expect(error).toBeInstanceOf(FenceUnsafeError)
    expect(error).toMatchObject({ code: 'FENCE_UNSAFE', key: 'job' })
    expect(await world().until(other.locks.acquire('job'))).not.toBeNull()
  })

  it('of one key says nothing about another', async () => {
    const { hold } = world().worker()
    world().driver.plan('acquire', answer({ outcome: 'granted', fence: 9_000, remainingMs: 30_000 }))
    world().driver.plan('acquire', answer({ outcome: 'granted', fence: 10, remainingMs: 30_000 }))
    expect((await hold('a')).fence).toBe(9_000)
    expect((await hold('b')).fence).toBe(10)
  })
})

describe('the memory of fences', () => {
  it('forgets the key that it saw longest ago, and stays small', () => {
    const ledger = new FenceLedger()
    for (let index = 0; index < 10_000; index++) expect(ledger.accept(`k${index}`, 100)).toBe(true)
    expect(ledger.accept('k9999', 100)).toBe(false)
    expect(ledger.accept('k0', 1)).toBe(true)
  })

  it('keeps a key that is used', () => {
    const ledger = new FenceLedger()
    for (let index = 1; index <= 10_000; index++) {
      ledger.accept(`k${index}`, 1)
      if (index % 1_000 !== 0) continue
      if (index > 1_000) expect(ledger.accept('often', index - 1_000)).toBe(false)
      expect(ledger.accept('often', index)).toBe(true)
    }
  })

  it('does not take a refused fence for seen', () => {
    const ledger = new FenceLedger()
    expect([
      ledger.accept('k', 5),
      ledger.accept('k', 4),
      ledger.accept('k', 5),
      ledger.accept('k', 6),
    ]).toEqual([true, false, false, true])
  })
})
