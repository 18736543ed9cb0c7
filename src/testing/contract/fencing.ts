import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { Actor } from './actor.ts'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

export const fencing: readonly ContractBehaviour[] = group('locks: fencing', (it) => {
  it('a thousand grants of one key have a thousand safe, growing fences', async ({ first, second }) => {
    let last = 0
    for (let round = 0; round < 1_000; round++) {
      const node = round % 2 ? first : second
      const lease = await node.grant('key')
      assert.ok(Number.isSafeInteger(lease.fence), `fence ${lease.fence}`)
      assert.ok(lease.fence > last, `fence ${lease.fence} after ${last}`)
      last = lease.fence
      if (round % 100 === 0) assert.equal((await node.see('key')).fence, last)
      assert.equal(await node.release(lease), 'released')
    }
  })

  it('a fence is exact to its last digit wherever it is shown', async ({ first, second }) => {
    for (let round = 0; round < 25; round++) {
      const lease = await first.grant('key')
      const contended = await second.acquire('key')
      assert.ok(contended.outcome === 'held')
      assert.equal(contended.fence, lease.fence)
      assert.equal((await second.see('key')).fence, lease.fence)
      assert.equal((await second.scan('', 10))[0]?.fence, lease.fence)
      await first.release(lease)
    }
  })

  it('the fence in the store is the fence that was granted', ['raw readFence'], async (stage) => {
    for (let round = 0; round < 100; round++) {
      const lease = await stage.first.grant('key')
      assert.equal(await stage.raw.readFence(stage.namespace, 'key'), String(lease.fence))
      await stage.first.release(lease)
    }
  })

  it('a fresh key’s fence is the store’s clock in microseconds, so that fences of all drivers compare', async (stage) => {
    const lease = await stage.first.grant('key')
    const { acquiredAt } = await stage.first.see('key')
    const apartMs = Math.abs(lease.fence / 1_000 - acquiredAt)
    assert.ok(apartMs < 5_000, `fence ${lease.fence} at ${acquiredAt}`)
  })

  it('fences grow across sessions', async ({ enter }) => {
    let last = 0
    for (let round = 0; round < 10; round++) {
      const node = enter(round % 2 ? 'first' : 'second')
      const lease = await node.grant('key')
      assert.ok(lease.fence > last)
      last = lease.fence
      await node.release(lease)
    }
  })

  it('fences grow across lapses', async ({ first, second, briefMs }) => {
    let last = (await first.grant('key', { ttlMs: briefMs })).fence
    for (const node of [second, first]) {
      const fence = await fenceOnceFree(node, 'key', briefMs)
      assert.ok(fence > last)
      last = fence
    }
  })

  it('fences grow across a purge of the record', async ({ first, second }) => {
    const lease = await first.grant('key')
    await first.release(lease)
    await second.purgeAll()
    assert.ok((await second.grant('key')).fence > lease.fence)
  })

  it('fences grow across an immediate revocation', async ({ first, second }) => {
    const lease = await first.grant('key')
    assert.equal((await second.revoke(lease, true)).outcome, 'released')
    assert.ok((await second.grant('key')).fence > lease.fence)
  })

  it('fences grow across a deletion of the record while it is held', ['raw forgetKey'], async (stage) => {
    const { first, second, raw, namespace } = stage
    let last = 0
    for (let round = 0; round < 20; round++) {
      const { fence } = await (round % 2 ? first : second).grant('key')
      assert.ok(fence > last, `fence ${fence} after ${last}`)
      last = fence
      await raw.forgetKey(namespace, 'key')
    }
  })

  it(
    'fences grow although an older state of the record was put back, as by a restored snapshot (N35)',
    ['raw writeFence'],
    async ({ first, second, raw, namespace }) => {
      const old = await first.grant('key')
      await first.release(old)
      const last = await second.grant('key')
      await raw.writeFence(namespace, 'key', old.fence)
      await second.release(last)
      assert.ok((await first.grant('key')).fence > last.fence)
    },
  )

  it('a fence ahead of the store’s clock still grows, by one', ['raw writeFence'], async (stage) => {
    const { first, second, raw, namespace } = stage
    const lease = await first.grant('key')
    const ahead = lease.fence + 3_600_000_000
    await raw.writeFence(namespace, 'key', ahead)
    await first.release(lease)
    assert.equal((await second.grant('key')).fence, ahead + 1)
  })

  it('a fence ahead of the store’s clock survives release and purge', ['raw writeFence'], async (stage) => {
    const { first, second, raw, namespace } = stage
    const lease = await first.grant('key')
    const ahead = lease.fence + 3_600_000_000
    await raw.writeFence(namespace, 'key', ahead)
    await first.release(lease)
    await second.purgeAll()
    assert.ok((await second.grant('key')).fence > ahead)
  })

  it('a refresh and a repeated acquire keep the fence', async ({ first }) => {
    const lease = await first.grant('key')
    await first.refresh(lease)
    assert.equal((await first.see('key')).fence, lease.fence)
    await first.grant('key', { token: lease.token })
    await first.refresh(lease)
    assert.equal((await first.see('key')).fence, lease.fence)
  })

  it('a failed attempt uses up no fence of the holder', async ({ first, second }) => {
    const lease = await first.grant('key')
    for (let round = 0; round < 5; round++) await second.acquire('key')
    assert.equal((await first.see('key')).fence, lease.fence)
    assert.equal((await first.refresh(lease, longMs)).outcome, 'held')
  })
})

async function fenceOnceFree(node: Actor, key: string, ttlMs: number): Promise<number> {
  const answer = await until(
    'the key is free',
    () => node.acquire(key, { ttlMs }),
    ({ outcome }) => outcome === 'granted',
  )
  return answer.outcome === 'granted' ? answer.fence : Number.NaN
}
