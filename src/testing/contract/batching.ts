import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { AcquireRequest } from '../../driver/index.ts'
import { wishFor } from './actor.ts'
import { askUntilSettled, patient, skipping, unlessFailed } from './persistence.ts'
import { newToken } from './tokens.ts'
import { group, longMs, someKeys } from './stage.ts'

export const batching: readonly ContractBehaviour[] = group('locks: batching', (it) => {
  it('acquires are answered item by item, in order', async ({ first, second }) => {
    const held = await first.grant('m-held')
    const mine = await second.grant('z-mine')
    const released = await second.grant('a-released')
    await second.release(released)
    const answers = await second.acquireAll([
      wishFor('z-mine', { token: mine.token }),
      wishFor('x-free'),
      wishFor('m-held'),
      wishFor('a-released', { token: released.token }),
      wishFor('b-free'),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['granted', 'granted', 'held', 'spent', 'granted'],
    )
    assert.equal(answers[0]?.outcome === 'granted' && answers[0].fence, mine.fence)
    assert.equal(answers[2]?.outcome === 'held' && answers[2].fence, held.fence)
    const fences = (await first.peekAll(['x-free', 'b-free'])).map((record) => record?.fence)
    assert.deepEqual(
      [answers[1], answers[4]].map((answer) => answer?.outcome === 'granted' && answer.fence),
      fences,
    )
  })

  it('each item of a batch has its own ttl and holder', async ({ first, second }) => {
    const keys = ['b', 'c', 'a']
    await first.acquireAll(
      keys.map((key, index) => wishFor(key, { ttlMs: longMs * (index + 1), holder: `{"of":"${key}"}` })),
    )
    const records = await second.peekAll(keys)
    for (const [index, record] of records.entries()) {
      assert.equal(record?.holder, `{"of":"${keys[index]}"}`)
      const ttlMs = longMs * (index + 1)
      assert.ok(record.remainingMs > ttlMs - 10_000 && record.remainingMs <= ttlMs)
    }
  })

  it('refreshes are answered item by item, in order', async ({ first, second }) => {
    const one = await first.grant('m')
    const two = await first.grant('a')
    const other = await second.grant('z')
    const requests = [
      { key: 'never', token: newToken(), ttlMs: longMs },
      { key: 'm', token: one.token, ttlMs: 2 * longMs },
      { key: 'z', token: newToken(), ttlMs: longMs },
      { key: 'a', token: two.token, ttlMs: 3 * longMs },
      { key: 'z', token: other.token, ttlMs: longMs },
    ]
    // The same key twice is allowed for here, so that answers cannot be matched by key alone.
    const answers = await first.refreshAll(requests)
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['lost', 'held', 'lost', 'held', 'held'],
    )
    const remaining = answers.map((answer) => (answer.outcome === 'held' ? answer.remainingMs : 0))
    assert.ok((remaining[1] as number) > longMs && (remaining[1] as number) <= 2 * longMs)
    assert.ok((remaining[3] as number) > 2 * longMs && (remaining[3] as number) <= 3 * longMs)
  })

  it('releases are answered item by item, in order', async ({ first, second }) => {
    const one = await first.grant('m')
    const two = await first.grant('a')
    await second.grant('z')
    const answers = await first.releaseAll([
      { key: 'z', token: newToken() },
      { key: 'm', token: one.token },
      { key: 'never', token: newToken() },
      { key: 'a', token: two.token },
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['lost', 'released', 'lost', 'released'],
    )
    assert.deepEqual(
      (await second.peekAll(['z', 'm', 'a'])).map((record) => record?.key),
      ['z', undefined, undefined],
    )
  })

  it('a batch may have as many items as the driver states', async ({ first, second, abilities }) => {
    const keys = someKeys(abilities.maxBatch)
    const requests = keys.map((key) => wishFor(key))
    const granted = await first.acquireAll(requests)
    assert.deepEqual(tally(granted), { granted: keys.length })
    assert.deepEqual(tally(await second.acquireAll(keys.map((key) => wishFor(key)))), { held: keys.length })
    const refreshed = await second.refreshAll(
      requests.map(({ key, token }) => ({ key, token, ttlMs: 2 * longMs })),
    )
    assert.deepEqual(tally(refreshed), { held: keys.length })
    const records = await second.peekAll(keys)
    assert.deepEqual(
      records.map((record) => record?.key),
      keys,
    )
    assert.deepEqual(
      records.map((record) => record?.fence),
      granted.map((answer) => answer.outcome === 'granted' && answer.fence),
    )
    assert.deepEqual(tally(await first.releaseAll(requests)), { released: keys.length })
    assert.deepEqual(new Set(await first.peekAll(keys)), new Set([null]))
  })

  it('a key named twice in one batch of acquires is granted at most once, and nobody fails', async (stage) => {
    const { first, second } = stage
    for (let round = 0; round < 5; round++) {
      const twice = `twice-${round}`
      const requests = [
        wishFor('a'),
        wishFor(twice),
        wishFor('m'),
        wishFor(twice),
        wishFor('z'),
        wishFor(twice),
      ]
      const answers = await acquireOnce(first.locks.acquire.bind(first.locks), requests)
      const contenders = answers.filter((_, index) => requests[index]?.key === twice)
      assert.ok(
        contenders.filter(({ outcome }) => outcome === 'granted').length <= 1,
        JSON.stringify(answers),
      )
      for (const { outcome } of contenders) assert.ok(['granted', 'held', 'busy'].includes(outcome), outcome)
      const bystanders = answers.filter((_, index) => requests[index]?.key !== twice)
      assert.deepEqual(tally(bystanders), round === 0 ? { granted: 3 } : { held: 3 })
      const settled = await askUntilSettled((items, call) => first.locks.acquire(items, call), requests)
      const owners = settled.filter(
        (answer, index) => answer.outcome === 'granted' && requests[index]?.key === twice,
      )
      assert.equal(owners.length, 1, JSON.stringify(settled))
      assert.equal((await second.see(twice)).fence, owners[0]?.outcome === 'granted' && owners[0].fence)
    }
  })

  it('a key named twice with the same token is one lease', async ({ first }) => {
    const token = newToken()
    const requests = [wishFor('key', { token }), wishFor('other'), wishFor('key', { token })]
    const answers = await first.acquireAll(requests)
    assert.deepEqual(tally(answers), { granted: 3 })
    const fences = [answers[0], answers[2]].map((answer) => answer?.outcome === 'granted' && answer.fence)
    assert.equal(fences[0], fences[1])
  })

  it('a held key named twice in one batch of acquires is held for both', async ({ first, second }) => {
    await first.grant('key')
    const answers = await second.acquireAll([
      wishFor('key'),
      wishFor('free'),
      wishFor('key', { waitingMs: longMs }),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['held', 'granted', 'held'],
    )
  })

  it('a key named twice in one batch of refreshes is judged by its token each time', async ({ first }) => {
    const lease = await first.grant('key')
    for (const tokens of [
      [lease.token, newToken()],
      [newToken(), lease.token],
      [lease.token, lease.token],
    ]) {
      const answers = await first.refreshAll(tokens.map((token) => ({ key: 'key', token, ttlMs: longMs })))
      const expected = tokens.map((token) => (token === lease.token ? 'held' : 'lost'))
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        expected,
      )
    }
  })

  it('a key named twice in one batch of releases is judged by its token each time', async ({ first }) => {
    for (const order of [
      ['mine', 'other'],
      ['other', 'mine'],
      ['mine', 'mine'],
    ]) {
      const lease = await first.grant('key')
      const answers = await first.releaseAll(
        order.map((whose) => ({ key: 'key', token: whose === 'mine' ? lease.token : newToken() })),
      )
      const expected = order.map((whose) => (whose === 'mine' ? 'released' : 'lost'))
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        expected,
      )
      assert.equal(await first.peek('key'), null)
    }
  })

  it('calls that are not the first attempt, and calls that wait for locked records, are answered alike', async (stage) => {
    const { first, second } = stage
    for (const call of [
      patient,
      { attempt: 2, lockedRows: 'skip' },
      { attempt: 3, lockedRows: 'wait' },
    ] as const) {
      const request = wishFor('key')
      const [granted] = await first.locks.acquire([request], call)
      assert.equal(granted?.outcome, 'granted')
      const [held] = await second.locks.acquire([wishFor('key')], call)
      assert.equal(held?.outcome, 'held')
      const [refreshed] = await second.locks.refresh([request], call)
      assert.equal(refreshed?.outcome, 'held')
      assert.equal((await first.locks.peek(['key'], call)).length, 1)
      const [released] = await first.locks.release([request], call)
      assert.equal(released?.outcome, 'released')
    }
  })

  it(
    'an item that cannot be handled fails alone; the others of its batch are handled',
    ['raw plantForeign'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      const one = await first.grant('a')
      await raw.plantForeign(namespace, 'm')
      const call = skipping
      const acquired = await first.locks.acquire([wishFor('a'), wishFor('m'), wishFor('z')], call)
      assert.deepEqual(
        acquired.map(({ outcome }) => outcome),
        ['held', 'failed', 'granted'],
      )
      assert.throws(() => unlessFailed(acquired[1] as (typeof acquired)[number]), Error)
      const token = newToken()
      const refreshed = await first.locks.refresh(
        [
          { key: 'm', token, ttlMs: longMs },
          { key: 'a', token: one.token, ttlMs: longMs },
        ],
        call,
      )
      assert.deepEqual(
        refreshed.map(({ outcome }) => outcome),
        ['failed', 'held'],
      )
      const released = await first.locks.release(
        [
          { key: 'm', token },
          { key: 'a', token: one.token },
        ],
        call,
      )
      assert.deepEqual(
        released.map(({ outcome }) => outcome),
        ['failed', 'released'],
      )
      assert.equal(await second.peek('a'), null)
    },
  )
})

/** One call, tried again only where the driver says that nothing was applied. */
async function acquireOnce(
  acquire: (
    requests: readonly AcquireRequest[],
    call: typeof skipping,
  ) => Promise<readonly { readonly outcome: string }[]>,
  requests: readonly AcquireRequest[],
): Promise<readonly { readonly outcome: string }[]> {
  const answers = await acquire(requests, skipping)
  assert.equal(answers.length, requests.length)
  return answers
}

function tally(answers: readonly { readonly outcome: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome } of answers) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}
