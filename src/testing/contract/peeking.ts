import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, someKeys } from './stage.ts'
import { until } from './until.ts'

export const peeking: readonly ContractBehaviour[] = group('locks: peeking', (it) => {
  it('a held lease is shown with everything an operator may know', async ({ first, second }) => {
    const holder = '{"instance":"somebody"}'
    const lease = await first.grant('key', { holder })
    const record = await second.see('key')
    assert.equal(record.key, 'key')
    assert.equal(record.fence, lease.fence)
    assert.equal(record.holder, holder)
    assert.equal(record.awaited, false)
    assert.equal(record.revoked, false)
    assert.ok(record.remainingMs > longMs - 10_000 && record.remainingMs <= longMs)
  })

  it('the token is never shown', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.acquire('key', { waitingMs: longMs })
    assert.ok(!JSON.stringify(await second.peekAll(['key'])).includes(lease.token))
    assert.ok(!JSON.stringify(await second.scan('', 10)).includes(lease.token))
  })

  it('acquired, expires and remaining fit together', async ({ first, second }) => {
    await first.grant('key', { ttlMs: longMs })
    const record = await second.see('key')
    assert.ok(Math.abs(record.expiresAt - record.acquiredAt - longMs) <= 5, JSON.stringify(record))
    const now = record.expiresAt - record.remainingMs
    assert.ok(now >= record.acquiredAt - 5, 'what was acquired lies in the past')
    const { now: storeNow } = await second.scheduled.poll()
    assert.ok(storeNow >= now - 5 && storeNow < now + 10_000, 'all times are the store’s')
  })

  it('a refresh changes when a lease ends, not when it began', async ({ first }) => {
    const lease = await first.grant('key')
    const before = await first.see('key')
    await first.refresh(lease, 2 * longMs)
    const after = await first.see('key')
    assert.equal(after.acquiredAt, before.acquiredAt)
    assert.ok(after.expiresAt > before.expiresAt)
  })

  it('a new lease of a key has its own beginning', async ({ first, second }) => {
    const lease = await first.grant('key')
    const { acquiredAt } = await first.see('key')
    await until(
      'the clock has gone on',
      () => first.scheduled.poll(),
      ({ now }) => now > acquiredAt + 1,
    )
    await first.release(lease)
    await second.grant('key')
    assert.ok((await first.see('key')).acquiredAt > acquiredAt)
  })

  it('what nobody holds is null: never asked for, released, or lapsed', async ({
    first,
    second,
    briefMs,
  }) => {
    await first.release(await first.grant('released'))
    await first.grant('lapsed', { ttlMs: briefMs })
    await until(
      'the lease has lapsed',
      () => second.peek('lapsed'),
      (record) => record === null,
    )
    assert.deepEqual(await second.peekAll(['never', 'released', 'lapsed']), [null, null, null])
  })

  it('keys are answered in the order in which they were asked for', async ({ first, second }) => {
    const keys = someKeys(30)
    for (const [index, key] of keys.entries()) if (index % 3 !== 0) await first.grant(key)
    const records = await second.peekAll(keys)
    assert.deepEqual(
      records.map((record) => record?.key ?? null),
      keys.map((key, index) => (index % 3 === 0 ? null : key)),
    )
  })

  it('looking changes nothing', async ({ first, second }) => {
    const lease = await first.grant('key')
    const before = await first.see('key')
    for (let round = 0; round < 3; round++) await second.peekAll(['key', 'other'])
    await second.scan('', 10)
    const { remainingMs: _, ...after } = await first.see('key')
    assert.deepEqual({ ...after, remainingMs: before.remainingMs }, before)
    assert.equal((await first.refresh(lease)).outcome, 'held')
    await second.grant('other')
  })
})
