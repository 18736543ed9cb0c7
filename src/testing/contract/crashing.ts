import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, type Stage } from './stage.ts'
import type { Run } from './task-actor.ts'

const retry = { onCrash: 'retry', maxAttempts: 3 } as const

/** Runs whose node died: nobody completed them, and their lease lapsed. */
export const crashing: readonly ContractBehaviour[] = group('tasks: lapsed runs', (it) => {
  it('a lapsed run is taken over: same slot, next attempt, greater fence (M3, N48)', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', {
      slot,
      after: mark,
      ...retry,
      holder: '{"instance":"heir"}',
    })
    assert.ok(answer.outcome === 'takeover', answer.outcome)
    assert.equal(answer.slot, run.slot)
    assert.equal(answer.attempt, 2)
    assert.ok(answer.fence > run.fence)
    assert.ok(answer.remainingMs > longMs - 10_000 && answer.remainingMs <= longMs)
    assert.equal(answer.mark, mark, 'a takeover decides no slot')
    assert.equal(answer.running?.attempt, 2)
    assert.equal((await first.scheduled.inspect('task')).running?.holder, '{"instance":"heir"}')
  })

  it('the log of a takeover: the lapsed attempt is lost, the next is running', async (stage) => {
    const run = await lapsedRun(stage)
    const heir = await stage.second.scheduled.takeOver('task')
    const lost = await stage.first.scheduled.row('task', run.slot, 1)
    assert.equal(lost.state, 'lost')
    assert.equal(lost.fence, run.fence)
    assert.ok(lost.endedAt !== null && lost.endedAt >= lost.startedAt)
    const row = await stage.first.scheduled.row('task', run.slot, 2)
    assert.deepEqual(
      { state: row.state, after: row.after, fence: row.fence, endedAt: row.endedAt },
      { state: 'running', after: run.slot, fence: heir.fence, endedAt: null },
    )
  })

  it('a lost run ended when its lease lapsed, however much later that is found (G6)', async (stage) => {
    const { first, second } = stage
    for (const onCrash of ['retry', 'skip'] as const) {
      const run = await lapsedRun(stage, onCrash)
      const { now, running } = await first.scheduled.inspect(onCrash)
      const lapsedAt = now + (running?.remainingMs ?? 0)
      await second.scheduled.waitFor(lapsedAt + 60)
      const [mark] = await second.scheduled.slots(onCrash, 0)
      await second.scheduled.claim(onCrash, { slot: mark, after: mark, ...retry, onCrash })
      const { state, endedAt } = await first.scheduled.row(onCrash, run.slot, 1)
      assert.equal(state, 'lost')
      // What is left was computed a moment after the time was read.
      assert.ok(Math.abs((endedAt ?? 0) - lapsedAt) <= 30, `${endedAt} instead of ${lapsedAt}`)
    }
  })

  it('the slot that was claimed is still to be had after the takeover', async (stage) => {
    const { second } = stage
    await lapsedRun(stage)
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const heir = await second.scheduled.takeOver('task', { slot, after: mark })
    await second.scheduled.complete(heir)
    const next = await second.scheduled.run('task', { slot, after: mark })
    assert.ok(next.fence > heir.fence)
    assert.equal(next.attempt, 1)
  })

  it('a takeover needs no new slot: a decided, an early and a behind one do as well', async (stage) => {
    const { second } = stage
    const run = await lapsedRun(stage)
    const { mark, now } = await second.scheduled.inspect('task')
    const wishes = [
      { slot: mark, after: mark },
      { slot: Math.ceil(now) + longMs, after: mark },
      { slot: mark + 1, after: mark - 7 },
    ]
    const brief = { ttlMs: stage.briefMs }
    for (const [index, wish] of wishes.entries()) {
      const heir = await second.scheduled.takeOver('task', { ...wish, ...brief })
      assert.deepEqual([heir.slot, heir.attempt, heir.mark], [run.slot, index + 2, mark])
      await second.scheduled.waitForLapse('task')
    }
  })

  it('asked again with the same token, a takeover is the same takeover', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const heir = await second.scheduled.takeOver('task')
    const claim = { slot: run.slot, after: run.slot - 1, token: heir.token, ...retry }
    const again = await first.scheduled.claim('task', claim)
    assert.ok(again.outcome === 'takeover', again.outcome)
    assert.deepEqual([again.slot, again.attempt, again.fence], [heir.slot, heir.attempt, heir.fence])
    assert.equal((await first.scheduled.log('task')).length, 3)
  })

  it('a run that was taken over is fenced out: its refresh is lost, its completion late (M17)', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const heir = await second.scheduled.takeOver('task')
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
    assert.equal(await first.scheduled.complete(run), 'late')
    const row = await first.scheduled.row('task', run.slot, 1)
    assert.deepEqual({ state: row.state, late: row.late }, { state: 'lost', late: 'succeeded' })
    assert.equal((await second.scheduled.refresh(heir)).outcome, 'held')
    assert.equal((await second.scheduled.inspect('task')).running?.fence, heir.fence)
    assert.equal(await second.scheduled.complete(heir), 'completed')
    assert.equal((await first.scheduled.row('task', run.slot, 2)).state, 'succeeded')
  })

  it('a run is retried as often as is allowed, and not once more', async (stage) => {
    const { first, second, briefMs } = stage
    const run = await lapsedRun(stage)
    let last = run.fence
    for (const attempt of [2, 3]) {
      const heir = await second.scheduled.takeOver('task', { ...retry, ttlMs: briefMs })
      assert.equal(heir.attempt, attempt)
      assert.ok(heir.fence > last)
      last = heir.fence
      await second.scheduled.waitForLapse('task')
    }
    const next = await first.scheduled.run('task', retry)
    assert.ok(next.slot > run.slot && next.attempt === 1 && next.fence > last)
    const states = (await first.scheduled.log('task', { from: run.slot, to: run.slot + 1 })).map(
      (row) => row.state,
    )
    assert.deepEqual(states, ['lost', 'lost', 'lost'])
  })

  it('where a crash is to be skipped, the lapsed run is lost and the next slot is granted (N60)', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const next = await second.scheduled.run('task', { onCrash: 'skip' })
    assert.ok(next.slot > run.slot && next.fence > run.fence)
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'lost')
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
    assert.equal(await first.scheduled.complete(run, { outcome: 'failed', error: 'too late' }), 'late')
    assert.equal((await first.scheduled.row('task', run.slot, 1)).late, 'failed')
    assert.equal((await second.scheduled.refresh(next)).outcome, 'held')
  })

  it('a lapsed run that is not to be retried is lost even where the claim gets nothing (G6)', async (stage) => {
    const { first, second } = stage
    for (const [task, wish] of [
      ['early', { slot: longMs }],
      ['decided', { slot: 0 }],
      ['behind', { slot: 1, after: -7 }],
      ['missed', { slot: 1, decide: 'miss', reason: 'late' }],
    ] as const) {
      const run = await lapsedRun(stage, task)
      const [mark] = await first.scheduled.slots(task, 1)
      const { now } = await first.scheduled.poll()
      const slot = task === 'early' ? Math.ceil(now) + wish.slot : mark + wish.slot
      const claim = { after: mark, ...wish, slot, ...('after' in wish ? { after: mark + wish.after } : {}) }
      const answer = await second.scheduled.claim(task, claim)
      assert.equal(answer.outcome, task === 'missed' ? 'skipped' : task)
      assert.equal('running' in answer && answer.running, null)
      assert.equal((await first.scheduled.inspect(task)).running, null)
      assert.equal((await first.scheduled.row(task, run.slot, 1)).state, 'lost')
    }
  })

  it('a lapsed run of a paused task waits for the resume to be retried', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    await first.scheduled.control('task', 'pause')
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, ...retry })
    assert.equal(answer.outcome === 'skipped' && answer.reason, 'paused')
    assert.equal((await first.scheduled.inspect('task')).running?.fence, run.fence)
    await first.scheduled.control('task', 'resume')
    const heir = await second.scheduled.takeOver('task', retry)
    assert.deepEqual([heir.slot, heir.attempt], [run.slot, 2])
  })

  it('slots that were decided while a run was lapsing do not prevent its retry', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: 5 * stage.briefMs })
    const [mark, one, two] = (await second.scheduled.slots('task', 2)) as [number, number, number]
    await second.scheduled.claim('task', { slot: one, after: mark, decide: 'miss', reason: 'late' })
    await second.scheduled.claim('task', { slot: two, after: one, decide: 'miss', reason: 'late' })
    await second.scheduled.waitForLapse('task')
    const heir = await second.scheduled.takeOver('task', retry)
    assert.deepEqual([heir.slot, heir.attempt, heir.mark], [run.slot, 2, two])
  })

  it('a run that ended past its lapse and was not taken over is done', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'succeeded')
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, ...retry })
    assert.equal(answer.outcome, 'granted', 'there is nothing to retry')
  })

  it('a lapsed run is shown as lapsed until somebody deals with it', async (stage) => {
    const run = await lapsedRun(stage)
    const { running } = await stage.second.scheduled.inspect('task')
    assert.equal(running?.fence, run.fence)
    assert.ok(running.remainingMs <= 0)
    assert.equal((await stage.first.scheduled.row('task', run.slot, 1)).state, 'running')
  })

  it('a queued slot is granted when the run before it has lapsed', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const next = await second.scheduled.run('task', { overlap: 'queue' })
    assert.ok(next.fence > run.fence)
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'lost')
  })

  it('a lapsed run of an edited task is taken over under the new schedule', async (stage) => {
    const { second } = stage
    const run = await lapsedRun(stage)
    await second.scheduled.register('task', { fingerprint: 'new' })
    const heir = await second.scheduled.takeOver('task', { fingerprint: 'new' })
    assert.deepEqual([heir.slot, heir.attempt], [run.slot, 2])
  })

  it('a lapsed run is never taken over under its own token: a claim that arrives twice uses up no attempt', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const claim = { slot: run.slot, after: run.slot - 1, token: run.token, ...retry, maxAttempts: 2 }
    for (let round = 0; round < 2; round++) {
      const again = await first.scheduled.claim('task', claim)
      assert.ok(again.outcome === 'decided', again.outcome)
      assert.equal(again.running?.fence, run.fence, 'the lapsed run is left as it is')
      assert.ok(again.running.remainingMs <= 0)
    }
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost', 'its holder gets no lease again')
    assert.equal((await second.scheduled.row('task', run.slot, 1)).state, 'running')
    const heir = await second.scheduled.takeOver('task', { maxAttempts: 2 })
    assert.deepEqual([heir.slot, heir.attempt], [run.slot, 2])
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'lost')
  })

  it('nor is a retry that lapsed, under the token that took it over', async (stage) => {
    const { first, second, briefMs } = stage
    const run = await lapsedRun(stage)
    const heir = await second.scheduled.takeOver('task', { ttlMs: briefMs })
    await second.scheduled.waitForLapse('task')
    const claim = { slot: heir.mark, after: heir.mark, token: heir.token, ...retry }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'decided')
    const next = await first.scheduled.takeOver('task', retry)
    assert.deepEqual([next.slot, next.attempt], [run.slot, 3])
  })

  it('where a crash is to be skipped, a claim that arrives twice does not give the run up either', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const claim = { slot: run.slot, after: run.slot - 1, token: run.token }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'decided')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal((await second.scheduled.row('task', run.slot, 1)).state, 'succeeded')
  })

  it('a slot that is claimed under the token of a lapsed run is held, and stays to be had under another', async (stage) => {
    const { first, second } = stage
    for (const overlap of ['skip', 'queue'] as const) {
      for (const policy of [{ onCrash: 'skip' }, retry] as const) {
        const task = `${overlap}-${policy.onCrash}`
        const run = await lapsedRun(stage, task)
        const [mark, slot] = await first.scheduled.slots(task, 1)
        const claim = { slot, after: mark, overlap, ...policy }
        const answer = await first.scheduled.claim(task, { ...claim, token: run.token })
        assert.ok(answer.outcome === 'held', `${task}: ${answer.outcome}`)
        assert.equal(answer.mark, mark, 'nothing is skipped for a run that nobody renews')
        assert.equal(answer.running?.fence, run.fence)
        const expected = policy.onCrash === 'skip' ? 'granted' : 'takeover'
        assert.equal((await second.scheduled.claim(task, claim)).outcome, expected)
        assert.equal((await first.scheduled.row(task, run.slot, 1)).state, 'lost')
      }
    }
  })

  it('slots that need no run are decided under the token of a lapsed run as well, and leave it', async (stage) => {
    const { first, second } = stage
    const run = await lapsedRun(stage)
    const [mark, one, two] = (await first.scheduled.slots('task', 2)) as [number, number, number]
    const own = { token: run.token, ...retry }
    const missed = { slot: one, after: mark, decide: 'miss', reason: 'late', ...own } as const
    const late = await first.scheduled.claim('task', missed)
    assert.equal(late.outcome === 'skipped' && late.reason, 'late')
    await second.scheduled.control('task', 'pause')
    const paused = await first.scheduled.claim('task', { slot: two, after: one, ...own })
    assert.equal(paused.outcome === 'skipped' && paused.reason, 'paused')
    assert.deepEqual([paused.mark, paused.running?.fence], [two, run.fence])
    await second.scheduled.control('task', 'resume')
    const heir = await second.scheduled.takeOver('task')
    assert.deepEqual([heir.slot, heir.attempt], [run.slot, 2])
  })
})

async function lapsedRun({ first, second, briefMs }: Stage, task = 'task'): Promise<Run> {
  await first.scheduled.register(task)
  const run = await first.scheduled.run(task, { ttlMs: briefMs })
  await second.scheduled.waitForLapse(task)
  return run
}
