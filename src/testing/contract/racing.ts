import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { seededRandom } from '../seeded-random.ts'
import { type Actor, type Grant, wishFor } from './actor.ts'
import { group, longMs, someKeys } from './stage.ts'
import { until } from './until.ts'

export const racing: readonly ContractBehaviour[] = group('locks: racing', (it) => {
  it('two nodes that want the same hundred new keys at once get each key exactly once', async (stage) => {
    await raceForKeys(stage, someKeys(100))
  })

  it('two nodes that want the same released keys at once get each key exactly once', async (stage) => {
    const keys = someKeys(60)
    const leases = await grantAll(stage.first, keys)
    await stage.first.releaseAll(leases)
    await raceForKeys(stage, keys)
  })

  it('two nodes that want the same lapsed keys at once get each key exactly once', async (stage) => {
    const keys = someKeys(60)
    await grantAll(stage.first, keys, stage.briefMs)
    await until(
      'all have lapsed',
      () => stage.second.peekAll(keys),
      (records) => records.every((record) => record === null),
    )
    await raceForKeys(stage, keys)
  })

  it('of thirty who want one key at once, one gets it', async ({ first, second }) => {
    for (let round = 0; round < 5; round++) {
      const key = `key-${round}`
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, index) => (index % 2 ? first : second).acquire(key)),
      )
      assert.equal(answers.filter(({ outcome }) => outcome === 'granted').length, 1)
      assert.equal(answers.filter(({ outcome }) => outcome === 'held').length, 29)
    }
  })

  it('batches that name the same keys in opposite orders never stop each other (N36)', async ({
    first,
    second,
  }) => {
    const keys = someKeys(20)
    const backwards = keys.toReversed()
    for (let round = 0; round < 10; round++) {
      const [one, two] = await Promise.all([acquireEach(first, keys), acquireEach(second, backwards)])
      const leases = [...one, ...two]
      assert.equal(leases.length, keys.length)
      const refreshes = leases.map(({ key, token }) => ({ key, token, ttlMs: longMs }))
      const [ahead, behind] = await Promise.all([
        first.refreshAll(refreshes),
        second.refreshAll(refreshes.toReversed()),
        first.acquireAll(backwards.map((key) => wishFor(key))),
      ])
      for (const { outcome } of [...ahead, ...behind]) assert.equal(outcome, 'held')
      const released = await Promise.all([
        first.releaseAll(refreshes),
        second.releaseAll(refreshes.toReversed()),
      ])
      for (const { outcome } of released.flat()) assert.equal(outcome, 'released')
    }
  })

  it('holders exclude each other and their fences grow, whatever comes at once (N33)', async ({
    first,
    second,
    enter,
  }) => {
    const keys = ['a', 'b', 'c']
    const holders = new Map<string, number>()
    const fences = new Map<string, number>()
    const random = seededRandom(7)
    const nodes = [first, second, enter('first'), enter('second')]
    let grants = 0
    const work = async (node: Actor): Promise<void> => {
      for (let round = 0; round < 25; round++) {
        const key = random.pick(keys)
        const request = wishFor(key)
        const answer = await node.acquire(key, request)
        if (answer.outcome !== 'granted') continue
        grants++
        assert.equal(holders.get(key), undefined, `${key} is held by two`)
        assert.ok(answer.fence > (fences.get(key) ?? 0), `fence ${answer.fence} after ${fences.get(key)}`)
        holders.set(key, answer.fence)
        fences.set(key, answer.fence)
        if (random.integer(2) === 0) assert.equal((await node.refresh(request)).outcome, 'held')
        holders.delete(key)
        assert.equal(await node.release(request), 'released')
      }
    }
    await Promise.all(nodes.map(work))
    assert.ok(grants >= keys.length, `only ${grants} grants`)
  })

  it('a release and a contender at once: the key ends up free or with the contender', async ({
    first,
    second,
  }) => {
    for (let round = 0; round < 20; round++) {
      const lease = await first.grant('key')
      const request = wishFor('key')
      const [released, answer] = await Promise.all([first.release(lease), second.acquire('key', request)])
      assert.equal(released, 'released')
      const record = await first.peek('key')
      if (answer.outcome === 'granted') {
        assert.equal(record?.fence, answer.fence)
        assert.ok(answer.fence > lease.fence)
        assert.equal(await second.release(request), 'released')
      } else {
        assert.equal(answer.outcome, 'held')
        assert.equal(record, null)
      }
    }
  })
})

interface Nodes {
  readonly first: Actor
  readonly second: Actor
}

async function raceForKeys({ first, second }: Nodes, keys: readonly string[]): Promise<void> {
  const won = await Promise.all([
    inBatches(first, keys),
    inBatches(second, keys.toReversed()),
    inBatches(second, keys),
    inBatches(first, keys.toReversed()),
  ])
  const grants = won.flat()
  assert.deepEqual(grants.map(({ key }) => key).toSorted(), keys.toSorted(), 'each key is granted once')
  const records = await first.peekAll(grants.map(({ key }) => key))
  assert.deepEqual(
    records.map((record) => record?.fence),
    grants.map(({ fence }) => fence),
  )
}

async function inBatches(node: Actor, keys: readonly string[]): Promise<Grant[]> {
  const batches: Promise<Grant[]>[] = []
  for (let start = 0; start < keys.length; start += 10)
    batches.push(acquireEach(node, keys.slice(start, start + 10)))
  return (await Promise.all(batches)).flat()
}

async function acquireEach(node: Actor, keys: readonly string[]): Promise<Grant[]> {
  const requests = keys.map((key) => wishFor(key))
  const answers = await node.acquireAll(requests)
  return answers.flatMap((answer, index) => {
    const { key, token } = requests[index] as (typeof requests)[number]
    assert.ok(answer.outcome === 'granted' || answer.outcome === 'held', JSON.stringify(answer))
    return answer.outcome === 'granted' ? [{ ...answer, key, token }] : []
  })
}

async function grantAll(node: Actor, keys: readonly string[], ttlMs = longMs): Promise<Grant[]> {
  const grants: Grant[] = []
  for (const key of keys) grants.push(await node.grant(key, { ttlMs }))
  return grants
}
