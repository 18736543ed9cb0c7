import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { Actor } from './actor.ts'
import { newToken } from './tokens.ts'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

export const releasing: readonly ContractBehaviour[] = group('locks: releasing', (it) => {
  it('a released key is free for everybody at once', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal(await first.release(lease), 'released')
    assert.equal(await second.peek('key'), null)
    await second.grant('key')
  })

  it('a lease is released from any connection', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal(await second.release(lease), 'released')
    assert.equal(await first.peek('key'), null)
  })

  it('a release that is sent again answers released again (N2)', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal(await first.release(lease), 'released')
    assert.equal(await first.release(lease), 'released')
    assert.equal(await second.release(lease), 'released')
  })

  it('a release sent twice at once does not fail', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.deepEqual(await Promise.all([first.release(lease), second.release(lease)]), [
      'released',
      'released',
    ])
    assert.equal(await first.peek('key'), null)
  })

  it('a release under another token is lost, and the holder is untouched', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal(await second.release({ key: 'key', token: newToken() }), 'lost')
    assert.equal((await first.see('key')).fence, lease.fence)
    assert.equal((await second.acquire('key')).outcome, 'held')
  })

  it('a release of a key that never was is lost', async ({ first, second }) => {
    assert.equal(await first.release({ key: 'key', token: newToken() }), 'lost')
    await second.grant('key')
  })

  it('a release never creates a record', ['raw countKeys'], async ({ first, raw, namespace }) => {
    await first.release({ key: 'key', token: newToken() })
    assert.equal(await raw.countKeys(namespace), 0)
  })

  it('a release after the lapse answers lost, and the key stays free (N1, N2)', async ({
    first,
    second,
    briefMs,
  }) => {
    const lease = await first.grant('key', { ttlMs: briefMs })
    await lapse(first)
    assert.equal(await first.release(lease), 'lost')
    assert.equal(await first.peek('key'), null)
    assert.ok((await second.grant('key')).fence > lease.fence)
  })

  it('a stale release never frees the successor’s lease (N27, M6)', async ({ first, second, briefMs }) => {
    const old = await first.grant('key', { ttlMs: briefMs })
    await lapse(first)
    const lease = await second.grant('key', { ttlMs: longMs })
    assert.equal(await first.release(old), 'lost')
    assert.equal((await second.see('key')).fence, lease.fence)
    assert.equal((await second.refresh(lease)).outcome, 'held')
    assert.equal((await first.acquire('key')).outcome, 'held')
  })

  it('a successor releases its lease after the stale release of its predecessor (N28)', async (stage) => {
    const { first, second, briefMs } = stage
    const old = await first.grant('key', { ttlMs: briefMs })
    await lapse(first)
    const lease = await second.grant('key')
    await first.release(old)
    assert.equal(await second.release(lease), 'released')
    assert.equal(await first.release(old), 'lost')
    assert.equal(await second.release(lease), 'released')
    await first.grant('key')
  })

  it('a released lease’s release, sent again late, never frees the successor’s lease', async ({
    first,
    second,
  }) => {
    const old = await first.grant('key')
    await first.release(old)
    const lease = await second.grant('key')
    // Its own lease ended as it wished; nothing is said of the successor's.
    await first.release(old)
    assert.equal((await second.see('key')).fence, lease.fence)
    assert.equal((await second.refresh(lease)).outcome, 'held')
  })

  it('the token that was released is spent: an acquire that comes late is not granted', async ({
    first,
    second,
  }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    assert.deepEqual(await second.acquire('key', { token: lease.token }), { outcome: 'spent' })
    assert.equal(await first.peek('key'), null)
  })

  it('a spent token does not keep others from the key', async ({ first, second }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    await second.acquire('key', { token: lease.token })
    assert.ok((await second.grant('key')).fence > lease.fence)
  })

  it('a spent token is not granted after others held the key and lapsed', async ({
    first,
    second,
    briefMs,
  }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    await second.grant('key', { ttlMs: briefMs })
    await lapse(second)
    assert.equal((await first.acquire('key', { token: lease.token })).outcome, 'spent')
  })

  it('a spent token asked for while another holds the key disturbs nobody', async ({ first, second }) => {
    const old = await first.grant('key')
    await first.release(old)
    const lease = await second.grant('key')
    const answer = await first.acquire('key', { token: old.token })
    assert.ok(answer.outcome === 'held' || answer.outcome === 'spent', answer.outcome)
    assert.equal((await second.see('key')).fence, lease.fence)
  })

  it('a token released after its lapse is spent as well', async ({ first, second, briefMs }) => {
    const lease = await first.grant('key', { ttlMs: briefMs })
    await lapse(first)
    await first.release(lease)
    assert.equal((await second.acquire('key', { token: lease.token })).outcome, 'spent')
    assert.equal(await first.peek('key'), null)
  })

  it('a token is spent for its own key only', async ({ first }) => {
    const lease = await first.grant('one')
    await first.release(lease)
    await first.grant('two', { token: lease.token })
  })
})

async function lapse(node: Actor): Promise<void> {
  await until(
    'the key is free',
    () => node.peek('key'),
    (record) => record === null,
  )
}
