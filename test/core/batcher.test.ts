import { DriverFault, type DriverFaultKind } from 'leasehold'
import type { CallOptions } from 'leasehold/driver'
import { beforeEach, describe, expect, it } from 'vitest'
import { Batcher, type ItemOptions, type Sent } from '../../src/core/batcher.ts'
import { rest, VirtualTime, type WorkerClock } from './virtual-time.ts'

interface Ask {
  readonly key: string
  readonly value?: number
}

/** One call in the air, to be ended by the test. */
interface Flight {
  readonly keys: readonly string[]
  readonly call: CallOptions
  answer(): Promise<void>
  fail(kind: DriverFaultKind | null): Promise<void>
}

let time: VirtualTime
let clock: WorkerClock
let flights: Flight[]
let batcher: Batcher<Ask, string>
/** Set: calls are not answered by hand but by this. */
let store: ((requests: readonly Ask[]) => Promise<readonly string[]>) | null

const answersOf = (requests: readonly Ask[]) => requests.map(({ key }) => `answer to ${key}`)

beforeEach(() => {
  time = new VirtualTime()
  clock = time.worker()
  flights = []
  store = null
  batcher = new Batcher<Ask, string>({
    clock,
    random: () => 0.5,
    keyOf: ({ key }) => key,
    maxBatch: 10,
    maxInFlight: 2,
    send: (requests, call) =>
      new Promise((resolve, reject) => {
        const end = (how: () => void) => {
          how()
          return rest()
        }
        flights.push({
          keys: requests.map(({ key }) => key),
          call,
          answer: () => end(() => resolve(answersOf(requests))),
          fail: (kind) =>
            end(() =>
              reject(kind === null ? new Error('cut') : new DriverFault(kind, `It failed: ${kind}.`)),
            ),
        })
        if (store !== null) void store(requests).then(resolve, reject)
      }),
  })
})

const plain: ItemOptions = { timeoutMs: 5_000, attempt: 1, lockedRows: 'skip' }
const ask = (key: string, options: Partial<ItemOptions> = {}) =>
  batcher.submit({ key }, { ...plain, ...options })
const keysInAir = () => flights.map(({ keys }) => keys)
const flight = (index: number): Flight => {
  const found = flights[index]
  if (found === undefined) throw new Error(`Only ${flights.length} calls were made.`)
  return found
}
const kinds = (sent: readonly Sent<string>[]) =>
  sent.map((one) => (one.kind === 'failed' ? one.fault.kind : one.kind))

/** What a promise has come to by now. */
async function now<Value>(promise: Promise<Value>): Promise<Value | 'pending'> {
  await rest()
  return Promise.race([promise, Promise.resolve('pending' as const)])
}

describe('joining', () => {
  it('sends a lone call at the end of the same tick, with no timer in between', async () => {
    const asked = ask('a')
    expect(flights).toEqual([])
    await Promise.resolve().then(() => {})
    await new Promise((done) => {
      process.nextTick(done)
    })
    expect(keysInAir()).toEqual([['a']])
    await flight(0).answer()
    expect(await asked).toMatchObject({ kind: 'answered', answer: 'answer to a' })
    expect(time.now).toBe(0)
  })

  it('joins the calls of one tick, and of the promise jobs that it sets off', async () => {
    void ask('a')
    void ask('b')
    void Promise.resolve().then(async () => {
      void ask('c')
      await Promise.resolve()
      void ask('d')
    })
    await rest()
    // Called from a promise job, as most code is: all of the tick's jobs come first.
    expect(keysInAir()).toEqual([['a', 'b', 'c', 'd']])
  })

  it('answers each call with its own answer, in whatever order they were made', async () => {
    const asked = ['c', 'a', 'b'].map((key) => ask(key))
    await rest()
    await flight(0).answer()
    expect((await Promise.all(asked)).map((sent) => sent.kind === 'answered' && sent.answer)).toEqual([
      'answer to c',
      'answer to a',
      'answer to b',
    ])
  })

  it('never sends more items in one call than the driver takes', async () => {
    for (let index = 0; index < 25; index++) void ask(`k${index}`)
    await rest()
    expect(keysInAir().map((keys) => keys.length)).toEqual([10, 10])
    await flight(0).answer()
    expect(keysInAir().map((keys) => keys.length)).toEqual([10, 10, 5])
  })

  it('has two calls in the air at most, and joins what comes meanwhile into the next', async () => {
    for (const key of ['a', 'b']) {
      void ask(key)
      await rest()
    }
    for (const key of ['c', 'd', 'e']) {
      void ask(key)
      await rest()
    }
    expect(keysInAir()).toEqual([['a'], ['b']])
    await flight(1).answer()
    expect(keysInAir()).toEqual([['a'], ['b'], ['c', 'd', 'e']])
  })

  it('never has a key twice in a call, or in two calls in the air', async () => {
    const asked = [ask('a'), ask('a'), ask('b'), ask('a')]
    await rest()
    expect(keysInAir()).toEqual([['a', 'b']])
    await flight(0).answer()
    expect(keysInAir()).toEqual([['a', 'b'], ['a']])
    await flight(1).answer()
    await flight(2).answer()
    expect(kinds(await Promise.all(asked))).toEqual(Array(4).fill('answered'))
    expect(flights).toHaveLength(3)
  })

  it('sends the calls for one key in the order in which they came', async () => {
    const order: number[] = []
    for (let index = 0; index < 5; index++) void ask('a').then(() => order.push(index))
    for (let index = 0; index < 5; index++) {
      await rest()
      await flight(index).answer()
    }
    expect(order).toEqual([0, 1, 2, 3, 4])
  })

  it('keeps apart what is to be sent in different ways', async () => {
    void ask('a')
    void ask('b', { lockedRows: 'wait' })
    void ask('c', { attempt: 2 })
    void ask('d')
    void ask('e', { attempt: 3 })
    await rest()
    expect(flights.map(({ keys, call }) => [keys, call.attempt > 1, call.lockedRows])).toEqual([
      [['a', 'd'], false, 'skip'],
      [['b'], false, 'wait'],
      [['c', 'e'], true, 'skip'],
    ])
  })

  it('counts a deadline from just before the request that was answered', async () => {
    const asked = ask('a')
    await time.advance(70)
    await flight(0).answer()
    expect(await asked).toMatchObject({
      sentAt: { monotonic: clock.monotonic() - 70, wall: clock.wall() - 70 },
    })
  })
})

describe('a fault of the whole call', () => {
  it('"retry" is tried again at once, then with growing pauses, and counts from the try that was answered', async () => {
    const asked = ask('a')
    await rest()
    await flight(0).fail('retry')
    expect(flights).toHaveLength(2)
    expect(time.now).toBe(0)
    await flight(1).fail('retry')
    expect(flights).toHaveLength(2)
    await time.advance(5)
    await flight(2).answer()
    const sent = await asked
    expect(sent).toMatchObject({ kind: 'answered', sentAt: { monotonic: clock.monotonic() - 4 } })
  })

  it('"retry" without end gives up within the timeout, as certainly not applied', async () => {
    store = () => Promise.reject(new DriverFault('retry', 'Deadlock.'))
    const asked = ask('a', { timeoutMs: 1_000 })
    expect(kinds([await time.until(asked)])).toEqual(['retry'])
    expect(time.now).toBeLessThanOrEqual(1_000)
    // With pauses of up to 25 ms: no storm.
    expect(flights.length).toBeLessThan(100)
  })

  it.each(['not-sent', 'unusable', 'unknown'] as const)('"%s" is not tried again', async (kind) => {
    const asked = [ask('a'), ask('b')]
    await rest()
    await flight(0).fail(kind)
    expect(kinds(await Promise.all(asked))).toEqual([kind, kind])
    await time.advance(10_000)
    expect(flights).toHaveLength(1)
  })

  it('of any other make counts as unknown, with its cause', async () => {
    const asked = ask('a')
    await rest()
    await flight(0).fail(null)
    expect(await asked).toMatchObject({
      kind: 'failed',
      fault: { kind: 'unknown', cause: { message: 'cut' } },
    })
  })

  it('thrown by a driver that does not even give a promise back is no different', async () => {
    const rude = new Batcher<Ask, string>({
      clock,
      random: () => 0.5,
      keyOf: ({ key }) => key,
      maxBatch: 10,
      maxInFlight: 2,
      send: () => {
        throw new TypeError('x is not a function')
      },
    })
    expect(await rude.submit({ key: 'a' }, plain)).toMatchObject({
      kind: 'failed',
      fault: { kind: 'unknown' },
    })
    await rude.idle()
  })

  it('that is no error at all does no harm either', async () => {
    store = () => Promise.reject(Object.create(null))
    expect(kinds([await ask('a')])).toEqual(['unknown'])
    await batcher.idle()
  })

  it('in a driver that answers another number of items counts as unknown', async () => {
    store = () => Promise.resolve(['only one'])
    expect(kinds(await Promise.all([ask('a'), ask('b')]))).toEqual(['unknown', 'unknown'])
  })

  it('"bad-item" is taken to the one item that is bad, and the others are answered', async () => {
    store = (requests) =>
      requests.some(({ key }) => key === 'bad')
        ? Promise.reject(new DriverFault('bad-item', 'NUL.'))
        : Promise.resolve(answersOf(requests))
    const keys = ['a', 'b', 'c', 'bad', 'd', 'e', 'f', 'g']
    const sent = await Promise.all(keys.map((key) => ask(key)))
    expect(kinds(sent)).toEqual(keys.map((key) => (key === 'bad' ? 'bad-item' : 'answered')))
    // Halves, not one by one: 8, 4 + 4, 2 + 2, 1 + 1.
    expect(flights).toHaveLength(7)
  })
})

describe('a call that hangs', () => {
  it('is given up at its timeout as unknown, and says later when it has really ended', async () => {
    const asked = ask('a', { timeoutMs: 1_000 })
    await time.advance(999)
    expect(await now(asked)).toBe('pending')
    await time.advance(1)
    const sent = await asked
    if (sent.kind !== 'failed') throw new Error('It was not given up.')
    expect(sent.fault.kind).toBe('unknown')
    await time.advance(60_000)
    expect(await now(sent.settled)).toBe('pending')
    await flight(0).answer()
    // With the answer that came too late, and counted from when that was sent.
    expect(await now(sent.settled)).toMatchObject({ answer: 'answer to a', sentAt: { monotonic: 1_000 } })
  })

  it('and fails in the end, has no late answer', async () => {
    const asked = ask('a', { timeoutMs: 1_000 })
    await time.advance(1_000)
    const sent = await asked
    if (sent.kind !== 'failed') throw new Error('It was not given up.')
    await flight(0).fail('unknown')
    expect(await now(sent.settled)).toBeNull()
  })

  it('does not hold up the call beside it', async () => {
    void ask('hangs')
    await rest()
    store = (requests) => Promise.resolve(answersOf(requests))
    for (let index = 0; index < 20; index++) {
      expect(kinds([await ask(`k${index}`)])).toEqual(['answered'])
    }
    expect(time.now).toBe(0)
  })

  it('holds up nothing that is sent in another way: what is tried again takes another connection', async () => {
    for (const key of ['a', 'b', 'c']) {
      void ask(key, { timeoutMs: 5_000 })
      await rest()
    }
    expect(flights).toHaveLength(2)
    store = (requests) => Promise.resolve(answersOf(requests))
    expect(kinds([await ask('d', { attempt: 2 })])).toEqual(['answered'])
    expect(kinds([await ask('e', { lockedRows: 'wait' })])).toEqual(['answered'])
    expect(time.now).toBe(0)
  })

  it('lets nothing behind it wait longer than its own timeout, and that was certainly not applied', async () => {
    for (const key of ['a', 'b']) {
      void ask(key, { timeoutMs: 5_000 })
      await rest()
    }
    const asked = ask('c', { timeoutMs: 200 })
    const later = ask('d', { timeoutMs: 300 })
    await time.advance(199)
    expect(await now(asked)).toBe('pending')
    await time.advance(1)
    expect(kinds([await asked])).toEqual(['not-sent'])
    await time.advance(99)
    expect(await now(later)).toBe('pending')
    await time.advance(1)
    expect(kinds([await later])).toEqual(['not-sent'])
    await time.advance(10_000)
    expect(keysInAir()).toEqual([['a'], ['b']])
  })

  it("gives each of its items up at that item's own timeout", async () => {
    const quick = ask('quick', { timeoutMs: 100 })
    const slow = ask('slow', { timeoutMs: 5_000 })
    await rest()
    expect(keysInAir()).toEqual([['quick', 'slow']])
    await time.advance(100)
    expect(kinds([await quick])).toEqual(['unknown'])
    await flight(0).answer()
    expect(kinds([await slow])).toEqual(['answered'])
  })

  it('frees the key of an item that was given up, so that it can be asked again meanwhile', async () => {
    void ask('a', { timeoutMs: 100 })
    void ask('b', { timeoutMs: 5_000 })
    await time.advance(100)
    const again = ask('a', { attempt: 2 })
    await rest()
    expect(keysInAir()).toEqual([['a', 'b'], ['a']])
    const third = ask('a')
    // The first flight ends: that says nothing about the second, in which the key is as well.
    await flight(0).answer()
    expect(keysInAir()).toEqual([['a', 'b'], ['a']])
    await flight(1).answer()
    expect(kinds([await again])).toEqual(['answered'])
    await flight(2).answer()
    expect(kinds([await third])).toEqual(['answered'])
  })

  it('is not sent again in halves once its items were given up', async () => {
    const asked = [ask('a', { timeoutMs: 100 }), ask('b', { timeoutMs: 100 })]
    await time.advance(100)
    expect(kinds(await Promise.all(asked))).toEqual(['unknown', 'unknown'])
    await flight(0).fail('bad-item')
    await time.advance(1_000)
    expect(flights).toHaveLength(1)
  })

  it('is not sent again with the items that were given up, when the rest is', async () => {
    const gone = ask('gone', { timeoutMs: 100 })
    const rest_ = ask('rest', { timeoutMs: 5_000 })
    await time.advance(100)
    await gone
    await flight(0).fail('retry')
    expect(keysInAir()).toEqual([['gone', 'rest'], ['rest']])
    await flight(1).answer()
    expect(kinds([await rest_])).toEqual(['answered'])
  })

  it('is idle for the batcher once everything was given up', async () => {
    void ask('a', { timeoutMs: 100 })
    void ask('a', { timeoutMs: 150 })
    const idle = batcher.idle()
    await time.advance(149)
    expect(await now(idle)).toBe('pending')
    await time.advance(1)
    expect(await now(idle)).toBeUndefined()
    expect(time.timers()).toEqual([])
  })
})

it('leaves no timer behind a call that was answered', async () => {
  store = (requests) => Promise.resolve(answersOf(requests))
  await Promise.all([ask('a'), ask('b'), ask('a')])
  await batcher.idle()
  expect(time.timers()).toEqual([])
})

it('is idle at once where nothing was asked', async () => {
  await batcher.idle()
})
