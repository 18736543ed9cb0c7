import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { newToken } from './tokens.ts'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

const fortyDaysMs = 40 * 24 * 60 * 60 * 1000

export const granting: readonly ContractBehaviour[] = group('locks: granting', (it) => {
  it('a free key is granted for the ttl that was asked for', async ({ first }) => {
    const { fence, remainingMs } = await first.grant('key', { ttlMs: longMs })
    assert.ok(Number.isSafeInteger(fence) && fence > 0, `fence ${fence}`)
    assert.ok(remainingMs > longMs - 10_000 && remainingMs <= longMs, `remaining ${remainingMs}`)
  })

  it('a key that is held is not granted to another token, and the answer says whose it is', async (stage) => {
    const holder = '{"instance":"the-holder"}'
    const lease = await stage.first.grant('key', { holder })
    const answer = await stage.second.acquire('key', { holder: '{"instance":"the-loser"}' })
    assert.ok(answer.outcome === 'held', JSON.stringify(answer))
    assert.equal(answer.fence, lease.fence)
    assert.equal(answer.holder, holder)
    assert.ok(answer.remainingMs > longMs - 10_000 && answer.remainingMs <= longMs)
  })

  it('the same connection is refused too if its token is another (N41)', async ({ first }) => {
    await first.grant('key')
    assert.equal((await first.acquire('key')).outcome, 'held')
  })

  it('a failed attempt leaves the lease as it was', async ({ first, second }) => {
    await first.grant('key')
    const before = await first.see('key')
    await second.acquire('key', { ttlMs: 3 * longMs })
    const { remainingMs: _, ...after } = await first.see('key')
    assert.deepEqual({ ...after, remainingMs: before.remainingMs }, before)
  })

  it('a contender with a shorter ttl does not evict the holder (N25)', async ({ first, second, briefMs }) => {
    const lease = await first.grant('key', { ttlMs: longMs })
    await second.acquire('key', { ttlMs: briefMs })
    assert.ok((await second.see('key')).remainingMs > longMs - 10_000)
    assert.equal((await first.refresh(lease)).outcome, 'held')
  })

  it('a lapsed lease is granted to the next who asks, under a greater fence (N32, N34)', async (stage) => {
    const { first, second, briefMs } = stage
    const old = await first.grant('key', { ttlMs: briefMs })
    const next = await until(
      'the key is free',
      () => second.acquire('key'),
      ({ outcome }) => outcome === 'granted',
    )
    assert.ok(next.outcome === 'granted' && next.fence > old.fence)
    assert.equal((await first.acquire('key')).outcome, 'held')
  })

  it('a lease is not granted to another before it has lapsed, and at most one ttl later', async (stage) => {
    const { first, second } = stage
    const ttlMs = stage.briefMs * 2
    const before = performance.now()
    await first.grant('key', { ttlMs })
    const granted = performance.now()
    await until(
      'the key is free',
      () => second.acquire('key'),
      ({ outcome }) => outcome === 'granted',
    )
    const after = performance.now()
    assert.ok(after - before >= ttlMs - 2, `free after ${after - before} of ${ttlMs} ms`)
    assert.ok(after - granted < ttlMs + 3_000, `free only after ${after - granted} of ${ttlMs} ms`)
  })

  it('asked again with the same token, the same lease is granted with the same fence', async ({ first }) => {
    const token = newToken()
    const lease = await first.grant('key', { token })
    const again = await first.grant('key', { token })
    assert.equal(again.fence, lease.fence)
  })

  it('asked again with the same token over another connection, it is the same lease too (N7)', async (stage) => {
    const token = newToken()
    const lease = await stage.first.grant('key', { token })
    assert.equal((await stage.second.grant('key', { token })).fence, lease.fence)
    assert.equal((await stage.second.acquire('key')).outcome, 'held')
  })

  it('asked again with the same token, the expiry is re-armed (M29)', async ({ first }) => {
    const token = newToken()
    await first.grant('key', { token, ttlMs: longMs })
    const again = await first.grant('key', { token, ttlMs: 2 * longMs })
    assert.ok(again.remainingMs > longMs && again.remainingMs <= 2 * longMs)
    assert.ok((await first.see('key')).remainingMs > longMs)
  })

  it('asked again with the same token and a shorter ttl, the expiry does not move back', async (stage) => {
    const { first, briefMs } = stage
    const token = newToken()
    await first.grant('key', { token, ttlMs: longMs })
    const before = await first.see('key')
    const again = await first.grant('key', { token, ttlMs: briefMs })
    assert.ok(again.remainingMs > longMs - 10_000, `remaining ${again.remainingMs}`)
    assert.equal((await first.see('key')).expiresAt, before.expiresAt)
  })

  it('asked again at once by two connections, one token gets one lease', async ({ first, second }) => {
    const token = newToken()
    const grants = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 ? first : second).grant('key', { token })),
    )
    assert.equal(new Set(grants.map(({ fence }) => fence)).size, 1)
  })

  it('tokens are compared letter by letter', async ({ first, second }) => {
    await first.grant('key', { token: 'abcDEF_-0123456789abcd' })
    for (const token of [
      'ABCdef_-0123456789abcd',
      'abcDEF_-0123456789abc',
      'abcDEF_-0123456789abcd_',
      'abcDEF%-0123456789abcd',
    ]) {
      assert.equal((await second.acquire('key', { token })).outcome, 'held', token)
    }
  })

  it('a token may have 64 characters', async ({ first }) => {
    const token = `${newToken()}${newToken()}${newToken()}`.slice(0, 64)
    const lease = await first.grant('key', { token })
    assert.equal((await first.refresh(lease)).outcome, 'held')
    assert.equal((await first.refresh({ ...lease, token: `${token.slice(0, 63)}~` })).outcome, 'lost')
    assert.equal(await first.release(lease), 'released')
  })

  it('the holder’s text arrives as it was sent', async ({ first, second }) => {
    const instance = '"quoted" \\ \u0000 \'it\' %s $1 😀 ключ ]] {}'
    const holder = JSON.stringify({ instance, label: 'ü'.repeat(400) })
    assert.ok(Buffer.byteLength(holder) <= 1_000)
    await first.grant('key', { holder })
    const answer = await second.acquire('key')
    assert.ok(answer.outcome === 'held')
    assert.equal(answer.holder, holder)
    assert.equal((await second.see('key')).holder, holder)
  })

  it('a new holder’s text takes the place of the old one’s', async ({ first, second }) => {
    const lease = await first.grant('key', { holder: '{"instance":"one"}' })
    await first.release(lease)
    await second.grant('key', { holder: '{"instance":"two"}' })
    assert.equal((await first.see('key')).holder, '{"instance":"two"}')
  })

  it('a lease of forty days is a lease of forty days (N15)', async ({ first, second }) => {
    const lease = await first.grant('key', { ttlMs: fortyDaysMs })
    assert.ok(lease.remainingMs > fortyDaysMs - longMs && lease.remainingMs <= fortyDaysMs)
    const answer = await second.acquire('key')
    assert.ok(answer.outcome === 'held' && answer.remainingMs > fortyDaysMs - longMs)
  })

  it('the shortest ttl that the driver states is kept', async ({ first, second, abilities }) => {
    const ttlMs = abilities.minTtlMs
    const lease = await first.grant('key', { ttlMs })
    assert.ok(lease.remainingMs <= ttlMs, `remaining ${lease.remainingMs} of ${ttlMs}`)
    await until(
      'the key is free',
      () => second.acquire('key'),
      ({ outcome }) => outcome === 'granted',
    )
  })

  it('leases of two keys are independent (M34)', async ({ first, second }) => {
    const one = await first.grant('one')
    const two = await first.grant('two')
    assert.equal(await first.release(one), 'released')
    assert.equal((await second.acquire('two')).outcome, 'held')
    assert.equal((await first.refresh(two)).outcome, 'held')
    assert.equal(await first.release(two), 'released')
    assert.deepEqual(await first.peekAll(['one', 'two']), [null, null])
  })
})
