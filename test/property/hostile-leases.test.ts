import fc from 'fast-check'
import { type Lease, LeaseholdError, LockService } from 'leasehold'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freshNamespace } from '../support/stores.ts'
import { fuzz } from './fuzz.ts'
import { poisonableKinds, type PoisonableStore } from './poison.ts'

/** What was answered, or the typed error; any other exception fails the test. */
async function typed<Value>(call: Promise<Value>): Promise<Value | LeaseholdError> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw new Error('A foreign exception.', { cause: error })
    if (error.code === 'STORE_UNAVAILABLE')
      throw new Error('It says to try again, which would not help.', { cause: error })
    expect(error.message).toMatch(/[Dd]elete|lost|not held|[Cc]lock/)
    return error
  }
}

describe.each(poisonableKinds)('a spoilt lease in $name', ({ isHere, poison, open }) => {
  let store: PoisonableStore
  beforeAll(async () => {
    if (isHere) store = await open()
  })
  afterAll(() => store?.close())

  it.skipIf(!isHere)(
    'is refused or taken for what it says: never granted twice, and no other lease is harmed',
    async () => {
      await fuzz(
        fc.tuple(poison('lease'), fc.boolean()),
        { runs: 60, withinMs: 20_000 },
        async ([bad, isHeld]) => {
          const namespace = freshNamespace()
          const options = { namespace, requestTimeout: '10s', heartbeat: false } as const
          await using one = new LockService({ driver: store.first, ...options })
          await using other = new LockService({ driver: store.second, ...options })
          const [good, spoilt] = (await Promise.all([one.acquire('good'), one.acquire('bad')])) as [
            Lease,
            Lease,
          ]
          if (!isHeld) await spoilt.release()
          await bad.spoil(store, { what: 'lease', namespace, name: 'bad' })

          const [before, granted, after] = await Promise.all([
            other.acquire('another'),
            typed(other.acquire('bad')),
            other.acquire('one more'),
          ])
          expect([before?.isHeld(), after?.isHeld()]).toEqual([true, true])
          if (granted !== null && !(granted instanceof LeaseholdError)) {
            expect(granted.fence).toBeGreaterThan(0)
            const second = await typed(one.acquire('bad'))
            expect(second === null || second instanceof LeaseholdError).toBe(true)
          }

          await Promise.all([good.extend('1m'), typed(spoilt.extend('1m'))])
          await typed(one.peek('bad'))
          expect((await one.list()).map(({ key }) => key)).toEqual(
            expect.arrayContaining(['another', 'good', 'one more']),
          )
          await typed(other.forceRelease('bad', { immediate: true }))
          expect(
            await Promise.all([good.release(), before?.release(), after?.release(), spoilt.release()]),
          ).toMatchObject([
            'released',
            'released',
            'released',
            expect.stringMatching(/released|already-lost|unknown/),
          ])
        },
      )
    },
  )
})
