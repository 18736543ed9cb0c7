import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, someKeys } from './stage.ts'
import { until } from './until.ts'

export const purging: readonly ContractBehaviour[] = group('locks: purging', (it) => {
  it('a purge never touches what is held', async ({ first, second }) => {
    const lease = await first.grant('key')
    await second.purgeAll()
    assert.equal((await second.see('key')).fence, lease.fence)
    assert.equal((await first.refresh(lease)).outcome, 'held')
    assert.equal(await first.release(lease), 'released')
  })

  it('a purge leaves young records: what was released lately is still remembered', async ({
    first,
    second,
  }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    assert.equal(await second.purge(longMs), 0)
    assert.equal((await second.acquire('key', { token: lease.token })).outcome, 'spent')
    assert.equal(await first.release(lease), 'released')
  })

  it('a purge answers a number within its limit', async ({ first, second }) => {
    const keys = someKeys(7)
    for (const key of keys) await first.release(await first.grant(key))
    const deleted = await second.purge(0, 3)
    assert.ok(Number.isInteger(deleted) && deleted >= 0 && deleted <= 3, `deleted ${deleted}`)
  })

  it(
    'a purge deletes no more than its limit, and no less if there is more',
    ['keeps free records'],
    async (stage) => {
      const { first, second } = stage
      for (const key of someKeys(7)) await first.release(await first.grant(key))
      const { now } = await first.scheduled.poll()
      // Free for 0 ms, and with no fence ahead of the clock, only once the clock has gone on a little.
      await first.scheduled.waitFor(now + 10)
      const deleted = [await second.purge(0, 3), await second.purge(0, 3), await second.purge(0, 3)]
      assert.deepEqual(deleted, [3, 3, 1])
    },
  )

  it('a purge with nothing to do answers 0', async ({ first }) => {
    assert.equal(await first.purge(0), 0)
  })

  it(
    'a purge deletes free records, one limit at a time, and says how many',
    ['raw countKeys', 'keeps free records'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      for (const key of someKeys(10)) await first.release(await first.grant(key))
      await first.grant('held')
      // "Free for 0 ms" may need the clock to have gone on by one.
      const deleted = await until(
        'a record is old enough',
        () => second.purge(0, 4),
        (count) => count > 0,
      )
      assert.ok(deleted <= 4)
      assert.equal(await raw.countKeys(namespace), 11 - deleted)
      await until(
        'all free records are gone',
        () => second.purgeAll().then(() => raw.countKeys(namespace)),
        (left) => left === 1,
      )
      assert.equal((await second.see('held')).key, 'held')
    },
  )

  it('a purge deletes lapsed records as well', ['raw countKeys', 'keeps free records'], async (stage) => {
    const { first, second, raw, namespace } = stage
    for (const key of someKeys(3)) await first.grant(key, { ttlMs: stage.briefMs })
    await until(
      'all free records are gone',
      () => second.purgeAll().then(() => raw.countKeys(namespace)),
      (left) => left === 0,
    )
  })

  it('the retention is counted from the release', ['raw countKeys', 'keeps free records'], async (stage) => {
    const { first, second, raw, namespace } = stage
    await first.release(await first.grant('key'))
    assert.equal(await second.purge(longMs), 0)
    assert.equal(await raw.countKeys(namespace), 1)
    await until(
      'the record is old enough',
      () => second.purge(50),
      (count) => count === 1,
    )
    assert.equal(await raw.countKeys(namespace), 0)
  })

  it(
    'a record whose fence is ahead of the store’s clock is never purged',
    ['raw countKeys', 'raw writeFence'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      const lease = await first.grant('key')
      await raw.writeFence(namespace, 'key', lease.fence + 3_600_000_000)
      await first.release(lease)
      assert.equal(await second.purge(0), 0)
      assert.equal(await raw.countKeys(namespace), 1)
    },
  )

  it('a purge concerns its own namespace only', async ({ first, enter, namespace }) => {
    const stranger = enter('second', `${namespace}-other`)
    const lease = await first.grant('key')
    await first.release(lease)
    await stranger.purgeAll()
    assert.equal((await first.acquire('key', { token: lease.token })).outcome, 'spent')
  })

  it('a key is as good as new after its purge', async ({ first, second }) => {
    const old = await first.grant('key')
    await first.release(old)
    await second.purgeAll()
    const lease = await second.grant('key')
    assert.ok(lease.fence > old.fence)
    assert.equal((await first.refresh(old)).outcome, 'lost')
    await first.release(old)
    assert.equal((await second.refresh(lease)).outcome, 'held')
    assert.equal((await first.acquire('key')).outcome, 'held')
  })
})
