import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs } from './stage.ts'

/** Claims that are not granted, and slots that are decided without a run. */
export const deciding: readonly ContractBehaviour[] = group('tasks: deciding', (it) => {
  it('a slot in the store’s future is early, and moves nothing', async ({ first, second }) => {
    await first.scheduled.register('task')
    const { mark, now } = await first.scheduled.inspect('task')
    const answer = await first.scheduled.claim('task', { slot: Math.ceil(now) + longMs, after: mark })
    assert.ok(answer.outcome === 'early', answer.outcome)
    assert.ok(answer.now >= now && answer.now < now + 10_000)
    assert.equal(answer.mark, mark)
    assert.equal((await second.scheduled.inspect('task')).mark, mark)
    assert.equal((await second.scheduled.log('task')).length, 1)
  })

  it('a slot in the future is early for skipping and for missing as well', async ({ first }) => {
    await first.scheduled.register('task')
    const { mark, now } = await first.scheduled.inspect('task')
    const claim = { slot: Math.ceil(now) + longMs, after: mark }
    assert.equal(
      (await first.scheduled.claim('task', { ...claim, decide: 'miss', reason: 'late' })).outcome,
      'early',
    )
    await first.scheduled.control('task', 'pause')
    assert.equal((await first.scheduled.claim('task', claim)).outcome, 'early')
    assert.equal((await first.scheduled.inspect('task')).mark, mark)
  })

  it('a slot that was decided is decided, also after its run has ended (M1, N46)', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const late = { slot: run.slot, after: run.slot - 1 }
    assert.equal((await second.scheduled.claim('task', late)).outcome, 'decided')
    await first.scheduled.complete(run)
    const answer = await second.scheduled.claim('task', late)
    assert.ok(answer.outcome === 'decided', answer.outcome)
    assert.equal(answer.mark, run.slot)
    assert.equal(
      (await second.scheduled.claim('task', { slot: run.slot - 1, after: run.slot - 2 })).outcome,
      'decided',
    )
    assert.equal(
      (await second.scheduled.claim('task', { slot: run.slot, after: run.slot })).outcome,
      'decided',
    )
  })

  it('a claim that follows another mark is behind and learns the present one (M18)', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const [mark, one, two, three] = (await first.scheduled.slots('task', 3)) as [
      number,
      number,
      number,
      number,
    ]
    await first.scheduled.complete(await first.scheduled.run('task', { slot: one, after: mark }))
    const answer = await second.scheduled.claim('task', { slot: two, after: mark })
    assert.ok(answer.outcome === 'behind', answer.outcome)
    assert.equal(answer.mark, one)
    assert.equal(answer.running, null)
    const ahead = await second.scheduled.claim('task', { slot: three, after: two })
    assert.equal(ahead.outcome, 'behind')
    assert.equal((await first.scheduled.inspect('task')).mark, one)
  })

  it('a claim that skips slots that somebody else is about to run is behind', async ({ first, second }) => {
    await first.scheduled.register('task')
    const [mark, ...slots] = await first.scheduled.slots('task', 6)
    const run = await first.scheduled.run('task', { slot: slots[0], after: mark })
    const claim = { slot: slots[5] as number, after: mark, overlap: 'queue' as const }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'behind')
    await first.scheduled.complete(run)
    for (const [index, slot] of slots.entries()) {
      if (index === 0) continue
      await first.scheduled.complete(await first.scheduled.run('task', { slot, after: slot - 1 }))
    }
  })

  it('a slot that comes due while the task is paused is skipped: paused', async ({ first, second }) => {
    await first.scheduled.register('task')
    await second.scheduled.control('task', 'pause')
    const [mark, , slot] = await first.scheduled.slots('task', 2)
    const answer = await first.scheduled.claim('task', { slot: slot as number, after: mark, gap: 'down' })
    assert.ok(answer.outcome === 'skipped', answer.outcome)
    assert.equal(answer.reason, 'paused')
    assert.equal(answer.mark, slot)
    assert.ok(answer.paused)
    assert.equal(answer.running, null)
    const row = await second.scheduled.row('task', slot as number, 0)
    assert.deepEqual(
      { state: row.state, reason: row.reason, after: row.after, gap: row.gap },
      { state: 'skipped', reason: 'paused', after: mark, gap: 'down' },
    )
  })

  it('what was due during a pause is not run after it', async ({ first }) => {
    await first.scheduled.register('task')
    await first.scheduled.control('task', 'pause')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    await first.scheduled.claim('task', { slot, after: mark })
    await first.scheduled.control('task', 'resume')
    assert.equal((await first.scheduled.claim('task', { slot, after: mark })).outcome, 'decided')
    await first.scheduled.run('task')
  })

  it('a slot that is past its start deadline is missed, with the reason that was given', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await first.scheduled.claim('task', { slot, after: mark, decide: 'miss', reason: 'late' })
    assert.ok(answer.outcome === 'skipped', answer.outcome)
    assert.equal(answer.reason, 'late')
    assert.equal(answer.mark, slot)
    assert.equal(answer.running, null)
    const row = await second.scheduled.row('task', slot, 0)
    assert.deepEqual(
      { state: row.state, reason: row.reason, after: row.after },
      { state: 'missed', reason: 'late', after: mark },
    )
    assert.ok(row.endedAt !== null)
  })

  it('a slot is missed while another runs, and the run is untouched', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, decide: 'miss', reason: 'late' })
    assert.ok(answer.outcome === 'skipped' && answer.reason === 'late', JSON.stringify(answer))
    assert.equal(answer.running?.fence, run.fence)
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
  })

  it('a paused task’s slot that is past its deadline is skipped: paused', async ({ first }) => {
    await first.scheduled.register('task')
    await first.scheduled.control('task', 'pause')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await first.scheduled.claim('task', { slot, after: mark, decide: 'miss', reason: 'late' })
    assert.equal(answer.outcome === 'skipped' && answer.reason, 'paused')
  })

  it('a slot that comes due while one runs is skipped: overlap (N47)', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, overlap: 'skip' })
    assert.ok(answer.outcome === 'skipped', answer.outcome)
    assert.equal(answer.reason, 'overlap')
    assert.equal(answer.mark, slot)
    assert.equal(answer.running?.fence, run.fence)
    const row = await first.scheduled.row('task', slot, 0)
    assert.deepEqual(
      { state: row.state, reason: row.reason, after: row.after, fence: row.fence },
      { state: 'skipped', reason: 'overlap', after: mark, fence: null },
    )
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal(
      (await second.scheduled.claim('task', { slot, after: mark })).outcome,
      'decided',
      'skipped for good',
    )
  })

  it('a slot that is queued behind a run is held, and granted when the run has ended', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const claim = { slot, after: mark, overlap: 'queue' as const }
    const answer = await second.scheduled.claim('task', claim)
    assert.ok(answer.outcome === 'held', answer.outcome)
    assert.equal(answer.mark, mark)
    assert.equal(answer.running?.fence, run.fence)
    assert.ok(answer.running.remainingMs > 0)
    assert.equal((await second.scheduled.inspect('task')).mark, mark)
    await first.scheduled.complete(run)
    const granted = await second.scheduled.claim('task', claim)
    assert.ok(granted.outcome === 'granted' && granted.fence > run.fence, granted.outcome)
  })
})
