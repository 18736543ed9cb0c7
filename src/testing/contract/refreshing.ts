import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { Actor, Grant } from './actor.ts'
import { newToken } from './tokens.ts'
import { group, longMs, type Stage } from './stage.ts'
import { persist, recover } from './recovery.ts'
import { until } from './until.ts'

const gone = { outcome: 'lost', reason: 'gone' }

export const refreshing: readonly ContractBehaviour[] = group('locks: refreshing', (it) => {
  it('a refresh moves the expiry to the ttl from now', async ({ first }) => {
    const lease = await first.grant('key', { ttlMs: longMs })
    const answer = await first.refresh(lease, 2 * longMs)
    assert.ok(answer.outcome === 'held')
    assert.ok(answer.remainingMs > 2 * longMs - 10_000 && answer.remainingMs <= 2 * longMs)
    assert.ok((await first.see('key')).remainingMs > longMs)
  })

  it('a refresh answers what the store has, not what was asked for', async ({ first }) => {
    const lease = await first.grant('key', { ttlMs: 2 * longMs })
    const answer = await first.refresh(lease, longMs)
    assert.ok(answer.outcome === 'held')
    assert.ok(answer.remainingMs > 2 * longMs - 10_000 && answer.remainingMs <= 2 * longMs)
  })

  it('a lease is refreshed from any connection', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal((await second.refresh(lease)).outcome, 'held')
  })

  it('a refresh never shortens the lease', async ({ first, second, briefMs }) => {
    const lease = await first.grant('key', { ttlMs: longMs })
    const before = await first.see('key')
    assert.equal((await first.refresh(lease, briefMs)).outcome, 'held')
    assert.equal((await second.see('key')).expiresAt, before.expiresAt)
  })

  it('an old heartbeat that lands after a longer one does not move the expiry back', async (stage) => {
    const { first, second, briefMs } = stage
    const lease = await first.grant('key', { ttlMs: longMs })
    await first.refresh(lease, 3 * longMs)
    await second.refresh(lease, longMs)
    await second.refresh(lease, briefMs)
    assert.ok((await first.see('key')).remainingMs > 2 * longMs)
  })

  it('a lease that was refreshed outlives its first ttl', async (stage) => {
    const lease = await grantAndProlong(stage)
    await waitForWitness(stage)
    assert.equal((await stage.second.acquire('key')).outcome, 'held')
    assert.equal((await stage.first.refresh(lease)).outcome, 'held')
  })

  it('a lease of forty days is refreshed to forty days (N15)', async ({ first }) => {
    const fortyDaysMs = 40 * 24 * 60 * 60 * 1000
    const lease = await first.grant('key')
    const answer = await first.refresh(lease, fortyDaysMs)
    assert.ok(answer.outcome === 'held' && answer.remainingMs > fortyDaysMs - longMs)
  })

  it('a refresh under another token is lost, and the holder is untouched (M20)', async ({
    first,
    second,
  }) => {
    await first.grant('key')
    const before = await first.see('key')
    assert.deepEqual(await second.refresh({ key: 'key', token: newToken() }, 3 * longMs), gone)
    assert.equal((await first.see('key')).expiresAt, before.expiresAt)
  })

  it('a refresh of a key that never was is lost', async ({ first }) => {
    assert.deepEqual(await first.refresh({ key: 'key', token: newToken() }), gone)
  })

  it('a refresh never creates a lease (N21)', async ({ first, second }) => {
    await first.refresh({ key: 'key', token: newToken() })
    assert.equal(await first.peek('key'), null)
    await second.grant('key')
  })

  it('a refresh never creates a record', ['raw countKeys'], async ({ first, raw, namespace }) => {
    await first.refresh({ key: 'key', token: newToken() })
    assert.equal(await raw.countKeys(namespace), 0)
  })

  it('a refresh after the release is lost and does not bring the lease back', async ({ first, second }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    assert.deepEqual(await first.refresh(lease), gone)
    assert.equal(await second.peek('key'), null)
    await second.grant('key')
  })

  it('a refresh after the lapse is lost, although nobody took the key (N21)', async ({ first, briefMs }) => {
    const lease = await first.grant('key', { ttlMs: briefMs })
    await until(
      'the key is free',
      () => first.peek('key'),
      (record) => record === null,
    )
    assert.deepEqual(await first.refresh(lease), gone)
    assert.equal(await first.peek('key'), null)
  })

  it('a refresh after a takeover is lost, and the successor is untouched (M7)', async ({
    first,
    second,
    briefMs,
  }) => {
    const lease = await first.grant('key', { ttlMs: briefMs })
    await until(
      'the key is free',
      () => first.peek('key'),
      (record) => record === null,
    )
    await second.grant('key', { ttlMs: longMs })
    const before = await second.see('key')
    assert.deepEqual(await first.refresh(lease, 3 * longMs), gone)
    const after = await second.see('key')
    assert.equal(after.fence, before.fence)
    assert.equal(after.expiresAt, before.expiresAt)
  })

  it(
    'a refresh after the record was deleted is lost, and nothing is put back (M7, M30)',
    ['raw forgetKey'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      const lease = await first.grant('key')
      await raw.forgetKey(namespace, 'key')
      assert.deepEqual(await first.refresh(lease), gone)
      assert.equal(await second.peek('key'), null)
      await second.grant('key')
      assert.deepEqual(await first.refresh(lease), gone)
    },
  )

  it('a lease survives what a driver has to survive (N12)', ['raw disturb'], async (stage) => {
    const { first, second, raw } = stage
    const lease = await first.grant('key')
    await raw.disturb()
    assert.equal((await persist(() => first.refresh(lease))).outcome, 'held')
    assert.equal((await persist(() => second.acquire('key'))).outcome, 'held')
    await raw.disturb()
    assert.equal(await persist(() => first.release(lease)), 'released')
    await raw.disturb()
    assert.equal(await persist(() => second.peek('key')), null)
    await recover([first, second])
  })
})

/** A short lease made long, beside another short one, `witness`, that was granted later and stays short. */
async function grantAndProlong({ first, briefMs }: Stage): Promise<Grant> {
  for (;;) {
    const started = performance.now()
    const lease = await first.grant('key', { ttlMs: briefMs })
    const answer = await first.refresh(lease, longMs)
    // Only a machine that slept between the two calls may have let the lease lapse.
    if (answer.outcome === 'lost' && performance.now() - started >= briefMs) continue
    assert.equal(answer.outcome, 'held')
    await first.acquire('witness', { ttlMs: briefMs })
    return lease
  }
}

async function waitForWitness({ second }: { readonly second: Actor }): Promise<void> {
  await until(
    'the witness has lapsed',
    () => second.peek('witness'),
    (record) => record === null,
  )
}
