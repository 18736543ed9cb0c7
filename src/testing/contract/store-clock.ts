import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { withHostClockMovedBy } from './host-clock.ts'
import { group, longMs } from './stage.ts'
import { until } from './until.ts'

const hourMs = 3_600_000

/** What a node whose own clock is wrong must not be able to do to a store that has one. */
export const storeClock: readonly ContractBehaviour[] = group('the store’s clock', (it) => {
  for (const [whose, offsetMs] of [
    ['an hour ahead', hourMs],
    ['an hour behind', -hourMs],
  ] as const) {
    it(
      `a node ${whose} is kept out as long as everybody else (N24)`,
      ['server clock'],
      async ({ first, second }) => {
        const lease = await first.grant('key')
        await withHostClockMovedBy(offsetMs, async () => {
          const answer = await second.acquire('key')
          assert.ok(answer.outcome === 'held', answer.outcome)
          assert.ok(
            answer.remainingMs > longMs - 10_000 && answer.remainingMs <= longMs,
            `${answer.remainingMs}`,
          )
        })
        assert.equal((await first.refresh(lease)).outcome, 'held')
      },
    )

    it(`a node ${whose} gets the ttl it asks for`, ['server clock'], async ({ first, second }) => {
      const lease = await withHostClockMovedBy(offsetMs, () => first.grant('key'))
      assert.ok(lease.remainingMs > longMs - 10_000 && lease.remainingMs <= longMs)
      const record = await second.see('key')
      assert.ok(record.remainingMs > longMs - 10_000 && record.remainingMs <= longMs)
      assert.ok(Math.abs(lease.fence / 1_000 - record.acquiredAt) < 5_000)
      const refreshed = await withHostClockMovedBy(offsetMs, () => first.refresh(lease, longMs))
      assert.ok(refreshed.outcome === 'held' && refreshed.remainingMs <= longMs)
    })

    it(
      `a node ${whose} mints fences that fit in with the others`,
      ['server clock'],
      async ({ first, second }) => {
        const one = await first.grant('key')
        await first.release(one)
        const two = await withHostClockMovedBy(offsetMs, () => second.grant('key'))
        await second.release(two)
        const three = await first.grant('key')
        assert.ok(one.fence < two.fence && two.fence < three.fence)
        assert.ok(three.fence - one.fence < 60_000_000, 'no fence is ahead of the store')
      },
    )

    it(`what a node ${whose} holds lapses on time`, ['server clock'], async ({ first, second, briefMs }) => {
      const lease = await withHostClockMovedBy(offsetMs, () => first.grant('key', { ttlMs: briefMs }))
      await until(
        'the key is free',
        () => second.peek('key'),
        (record) => record === null,
      )
      assert.equal((await withHostClockMovedBy(offsetMs, () => first.refresh(lease))).outcome, 'lost')
    })

    it(`a node ${whose} sees the store’s time`, ['server clock'], async ({ first, second }) => {
      const { now } = await first.scheduled.poll()
      const seen = await withHostClockMovedBy(offsetMs, () => second.scheduled.poll())
      assert.ok(seen.now >= now && seen.now < now + 10_000)
    })

    it(`a node ${whose} claims slots on the store’s clock`, ['server clock'], async ({ first, second }) => {
      await withHostClockMovedBy(offsetMs, () => second.scheduled.register('task'))
      const [mark, next] = await first.scheduled.slots('task', 1)
      const { now } = await first.scheduled.poll()
      assert.ok(mark <= now && mark > now - 10_000)
      const early = await withHostClockMovedBy(offsetMs, () =>
        second.scheduled.claim('task', { slot: now + hourMs / 2, after: mark }),
      )
      assert.equal(early.outcome, 'early')
      const run = await withHostClockMovedBy(offsetMs, () =>
        second.scheduled.run('task', { slot: next, after: mark }),
      )
      assert.ok(run.remainingMs > longMs - 10_000 && run.remainingMs <= longMs)
    })
  }

  it('the store’s time never runs backwards between answers', async ({ first, second }) => {
    let last = 0
    for (let round = 0; round < 20; round++) {
      const { now } = await (round % 2 ? first : second).scheduled.poll()
      assert.ok(now >= last, `${now} after ${last}`)
      last = now
    }
  })
})
