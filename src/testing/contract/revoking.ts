import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

const gone = { outcome: 'lost', reason: 'gone' }
const revoked = { outcome: 'lost', reason: 'revoked' }

export const revoking: readonly ContractBehaviour[] = group('locks: revoking', (it) => {
  it('a revoked lease is lost at its next refresh', async ({ first, second }) => {
    const lease = await first.grant('key')
    const answer = await second.revoke(lease)
    assert.ok(answer.outcome === 'revoked', JSON.stringify(answer))
    assert.ok(answer.remainingMs > longMs - 10_000 && answer.remainingMs <= longMs)
    assert.deepEqual(await first.refresh(lease), revoked)
    assert.deepEqual(await first.refresh(lease), revoked)
  })

  it('a revoked key stays closed until its holder has released it', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.revoke(lease)
    assert.equal((await second.acquire('key')).outcome, 'held')
    await first.refresh(lease)
    assert.equal((await second.acquire('key')).outcome, 'held')
    assert.equal(await first.release(lease), 'released')
    assert.ok((await second.grant('key')).fence > lease.fence)
  })

  it('a revoked key whose holder is silent opens when the lease has lapsed', async ({
    first,
    second,
    briefMs,
  }) => {
    const lease = await first.grant('key', { ttlMs: 4 * briefMs })
    assert.equal((await second.revoke(lease)).outcome, 'revoked')
    const next = await until(
      'the key is free',
      () => second.acquire('key'),
      ({ outcome }) => outcome === 'granted',
    )
    assert.ok(next.outcome === 'granted' && next.fence > lease.fence)
  })

  it('a refresh does not prolong a revoked lease', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.revoke(lease)
    const before = await second.see('key')
    await first.refresh(lease, 3 * longMs)
    assert.equal((await second.see('key')).expiresAt, before.expiresAt)
  })

  it('a repeated acquire with the token of a revoked lease neither grants nor prolongs it', async (stage) => {
    const { first, second } = stage
    const lease = await first.grant('key')
    await second.revoke(lease)
    const before = await second.see('key')
    const answer = await first.acquire('key', { token: lease.token, ttlMs: 3 * longMs })
    assert.notEqual(answer.outcome, 'granted')
    const after = await second.see('key')
    assert.deepEqual([after.expiresAt, after.fence, after.revoked], [before.expiresAt, lease.fence, true])
  })

  it('operators see that a lease is revoked and not yet given back', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal((await second.see('key')).revoked, false)
    await second.revoke(lease)
    assert.equal((await second.see('key')).revoked, true)
    assert.equal((await second.scan('', 10))[0]?.revoked, true)
  })

  it('the lease after a revoked one is not revoked', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.revoke(lease)
    await first.release(lease)
    const next = await second.grant('key')
    assert.equal((await second.see('key')).revoked, false)
    assert.equal((await second.refresh(next)).outcome, 'held')
  })

  it('the lease after a revoked one that lapsed is not revoked either', async ({
    first,
    second,
    briefMs,
  }) => {
    await second.revoke(await first.grant('key', { ttlMs: briefMs }))
    await until(
      'the key is free',
      () => second.peek('key'),
      (record) => record === null,
    )
    const next = await second.grant('key')
    assert.equal((await second.see('key')).revoked, false)
    assert.equal((await second.refresh(next)).outcome, 'held')
  })

  it('revoking twice is revoking once', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal((await second.revoke(lease)).outcome, 'revoked')
    assert.equal((await second.revoke(lease)).outcome, 'revoked')
    assert.equal(await first.release(lease), 'released')
    assert.deepEqual(await second.revoke(lease), { outcome: 'free' })
  })

  it('an immediate revocation frees the key at once', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.deepEqual(await second.revoke(lease, true), { outcome: 'released' })
    assert.equal(await second.peek('key'), null)
    assert.ok((await second.grant('key')).fence > lease.fence)
    assert.deepEqual(await first.refresh(lease), gone)
  })

  it('an immediate revocation frees a key that was revoked before', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.revoke(lease)
    assert.deepEqual(await second.revoke(lease, true), { outcome: 'released' })
    const next = await second.grant('key')
    assert.equal((await second.refresh(next)).outcome, 'held')
  })

  it('a holder that was evicted at once cannot refresh itself back, although nobody took the key', async (stage) => {
    const lease = await stage.first.grant('key')
    await stage.second.revoke(lease, true)
    assert.deepEqual(await stage.first.refresh(lease), gone)
    assert.equal(await stage.second.peek('key'), null)
  })

  it('the token of a holder that was evicted is spent', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.revoke(lease, true)
    assert.equal((await first.acquire('key', { token: lease.token })).outcome, 'spent')
    assert.equal(await second.peek('key'), null)
  })

  it('a revocation compares the fence: it never hits another holder than the operator saw', async (stage) => {
    const { first, second } = stage
    for (const immediate of [false, true]) {
      const old = await first.grant('key')
      await first.release(old)
      const lease = await second.grant('key')
      assert.deepEqual(await first.revoke(old, immediate), { outcome: 'changed', fence: lease.fence })
      assert.equal((await second.see('key')).revoked, false)
      assert.equal((await second.refresh(lease)).outcome, 'held')
      await second.release(lease)
    }
  })

  it('a revocation compares the fence to its last digit', async ({ first, second }) => {
    const lease = await first.grant('key')
    for (const fence of [lease.fence - 1, lease.fence + 1, 0]) {
      assert.deepEqual(await second.revoke({ key: 'key', fence }, true), {
        outcome: 'changed',
        fence: lease.fence,
      })
    }
    assert.equal((await first.refresh(lease)).outcome, 'held')
  })

  it('an immediate revocation that is sent again never frees the successor', async ({ first, second }) => {
    const old = await first.grant('key')
    await second.revoke(old, true)
    assert.deepEqual(await second.revoke(old, true), { outcome: 'free' })
    const lease = await second.grant('key')
    assert.deepEqual(await first.revoke(old, true), { outcome: 'changed', fence: lease.fence })
    assert.equal((await second.refresh(lease)).outcome, 'held')
  })

  it('there is nothing to revoke where nobody holds the key', async ({ first, second, briefMs }) => {
    assert.deepEqual(await first.revoke({ key: 'never', fence: 1 }), { outcome: 'free' })
    const released = await first.grant('released')
    await first.release(released)
    assert.deepEqual(await second.revoke(released), { outcome: 'free' })
    const lapsed = await first.grant('lapsed', { ttlMs: briefMs })
    await until(
      'the key is free',
      () => first.peek('lapsed'),
      (record) => record === null,
    )
    assert.deepEqual(await second.revoke(lapsed), { outcome: 'free' })
    assert.deepEqual(await second.revoke(lapsed, true), { outcome: 'free' })
  })

  it('a revocation never creates a record', ['raw countKeys'], async ({ first, raw, namespace }) => {
    await first.revoke({ key: 'key', fence: 1 })
    await first.revoke({ key: 'key', fence: 1 }, true)
    assert.equal(await raw.countKeys(namespace), 0)
  })

  it('a revoked holder’s other leases are untouched', async ({ first, second }) => {
    const one = await first.grant('one')
    const two = await first.grant('two')
    await second.revoke(one)
    const answers = await first.refreshAll(
      [one, two].map(({ key, token }) => ({ key, token, ttlMs: longMs })),
    )
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['lost', 'held'],
    )
  })
})
