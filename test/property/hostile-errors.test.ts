// Whatever a handler throws: the run has failed, its text is kept as far as there is one, the next slot comes, and callers
// get the very thing that was thrown.
import { LockService, onEvent, ScheduledTaskStore } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fleet } from '../scheduler/fleet.ts'

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const throwing = (): never => {
  throw new Error('from inside')
}
const circular: Record<string, unknown> = {}
circular['self'] = circular

const hostile: readonly (readonly [string, () => unknown])[] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['a symbol', () => Symbol('thrown')],
  ['a bigint', () => 10n ** 40n],
  ['an object without a prototype', () => Object.create(null) as unknown],
  ['something circular', () => circular],
  ['a revoked proxy', revoked],
  ['a proxy whose every trap throws', () => new Proxy({}, new Proxy({}, { get: throwing }))],
  ['what throws when it is shown', () => ({ toString: throwing, message: 'hidden' })],
  [
    'an error whose message throws',
    () => Object.defineProperty(new Error('x'), 'message', { get: throwing }),
  ],
  [
    'an error whose cause is itself',
    () => {
      const error = new Error('round and round')
      error.cause = error
      return error
    },
  ],
  ['ten megabytes', () => new Error('x'.repeat(10_000_000))],
  ['a text with NUL and half a character', () => new Error('a\0b\uD800c')],
  ['a function', () => throwing],
]

describe.each(hostile)('a handler that throws %s', (name, make) => {
  it('has failed, with a text that any store can keep, and the next slot comes', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const ends: string[] = []
    onTestFinished(onEvent('leasehold:run-end', ({ outcome }) => void ends.push(outcome)))
    node.runs('task', { every: '10s' }, ({ slot }) => {
      if (fleet.seconds(slot) === 10) throw make()
    })
    await fleet.start(node)
    await fleet.advance(25_000)
    expect(await fleet.history('task')).toEqual(['10/1 failed', '20/1 succeeded'])
    expect(ends).toEqual(['failed', 'succeeded'])
    const { error } = (await fleet.entries('task')).find(({ state }) => state === 'failed')!
    expect(Buffer.byteLength(error ?? '')).toBeLessThanOrEqual(4_000)
    expect(error?.isWellFormed()).toBe(true)
    expect(error).not.toContain('\0')
    expect(error).not.toBe('')
  })

  it('gives its callers that very thing, and the key back', async () => {
    const locks = new LockService({ driver: memoryDriver({ store: `throws ${name}` }) })
    onTestFinished(() => locks.close())
    const store = new ScheduledTaskStore({ locks })
    const thrown = make()
    const fail = async (): Promise<never> => {
      throw thrown
    }
    const caught: unknown[] = []
    for (const call of [
      () => locks.runExclusive('key', fail),
      () => locks.runExclusively('key', fail),
      () => locks.exclusive('key', fail)(),
      () => store.run('key', fail),
      () => store.run('slot', fail, { every: '1s' }),
    ]) {
      await call().then(
        () => caught.push('nothing'),
        (error: unknown) => caught.push(error),
      )
    }
    expect(caught.map((one) => Object.is(one, thrown))).toEqual([true, true, true, true, true])
    expect(await locks.peek('key')).toBeNull()
  })
})

describe('a handler that throws anything at all', () => {
  it('has failed, and its text is kept whole or cut', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const errors = fc.sample(fc.anything({ withNullPrototype: true, withBigInt: true }), {
      numRuns: 60,
      seed: 7,
    })
    let nth = 0
    node.runs('task', { every: '1s' }, () => {
      throw errors[nth++ % errors.length]
    })
    await fleet.start(node)
    await fleet.advance(60_500)
    const entries = (await fleet.entries('task')).filter(({ state }) => state !== 'registered')
    expect(entries).toHaveLength(60)
    expect(new Set(entries.map(({ state }) => state))).toEqual(new Set(['failed']))
    for (const { error } of entries) expect(typeof error).toBe('string')
  })
})
