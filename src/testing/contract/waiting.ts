import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { newToken } from './tokens.ts'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

export const waiting: readonly ContractBehaviour[] = group('locks: waiting', (it) => {
  it('a lease that nobody waits for is not awaited', async ({ first, second }) => {
    await first.grant('key')
    await second.acquire('key', { waitingMs: 0 })
    assert.equal((await first.see('key')).awaited, false)
  })

  it('a waiter that finds the key held marks the lease as awaited', async ({ first, second }) => {
    await first.grant('key')
    assert.equal((await second.acquire('key', { waitingMs: longMs })).outcome, 'held')
    assert.equal((await first.see('key')).awaited, true)
    assert.equal((await second.scan('', 10))[0]?.awaited, true)
  })

  it('a waiter that gets the key at once is not awaited by itself', async ({ first }) => {
    await first.grant('key', { waitingMs: longMs })
    assert.equal((await first.see('key')).awaited, false)
  })

  it('a waiter does not change the lease it waits for', async ({ first, second }) => {
    const lease = await first.grant('key')
    const before = await first.see('key')
    await second.acquire('key', { waitingMs: longMs, ttlMs: 3 * longMs })
    const after = await first.see('key')
    assert.equal(after.expiresAt, before.expiresAt)
    assert.equal(after.holder, before.holder)
    assert.equal(after.fence, lease.fence)
  })

  it('the mark of a waiter lapses when the time is over for which it said it waits', async (stage) => {
    const { first, second, briefMs } = stage
    await first.grant('key')
    await second.acquire('key', { waitingMs: briefMs })
    await until(
      'nobody waits',
      () => first.see('key'),
      ({ awaited }) => !awaited,
    )
  })

  it('a short wait does not take away the mark of a longer one', async ({ first, second, briefMs }) => {
    for (const key of ['long', 'short']) await first.grant(key)
    await second.acquire('long', { waitingMs: longMs })
    await second.acquire('long', { waitingMs: briefMs })
    await second.acquire('long', { waitingMs: 0 })
    await second.acquire('short', { waitingMs: briefMs })
    await until(
      'the short wait is over',
      () => first.see('short'),
      ({ awaited }) => !awaited,
    )
    assert.equal((await first.see('long')).awaited, true)
  })

  it('a refresh keeps the mark', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.acquire('key', { waitingMs: longMs })
    await first.refresh(lease)
    assert.equal((await first.see('key')).awaited, true)
  })

  it('a repeated acquire of the holder keeps the mark', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.acquire('key', { waitingMs: longMs })
    await first.grant('key', { token: lease.token })
    assert.equal((await first.see('key')).awaited, true)
  })

  it('each key of a batch is marked for itself', async ({ first, second }) => {
    for (const key of ['a', 'b', 'c']) await first.grant(key)
    await second.acquireAll(
      [['a', 0] as const, ['b', longMs] as const, ['c', 0] as const].map(([key, waitingMs]) => ({
        key,
        token: newToken(),
        ttlMs: longMs,
        holder: '{}',
        waitingMs,
      })),
    )
    const records = await first.peekAll(['a', 'b', 'c'])
    assert.deepEqual(
      records.map((record) => record?.awaited),
      [false, true, false],
    )
  })
})
