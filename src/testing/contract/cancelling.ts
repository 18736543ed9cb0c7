import assert from 'node:assert/strict'
import type { ContractBehaviour } from '../contract-subject.ts'
import { group, longMs, type Stage } from './stage.ts'
import type { Run } from './task-actor.ts'

const retry = { onCrash: 'retry', maxAttempts: 9 } as const
const by = 'ops: "not today" \\ 😀'

/** Runs that an operator asked to stop, and whose node died before it could. */
export const cancelling: readonly ContractBehaviour[] = group('tasks: cancelled runs', (it) => {
  it('a lapsed run that was asked to stop is not retried: the next slot is granted', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, ...retry })
    assert.ok(answer.outcome === 'granted', answer.outcome)
    assert.deepEqual([answer.slot, answer.attempt], [slot, 1])
    assert.ok(answer.fence > run.fence)
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
  })

  it('it is lost, and its row says that it was cancelled, by whom and why', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    await second.scheduled.run('task', retry)
    const row = await first.scheduled.row('task', run.slot, 1)
    assert.deepEqual(
      { state: row.state, reason: row.reason, error: row.error, fence: row.fence, late: row.late },
      { state: 'lost', reason: 'cancelled', error: by, fence: run.fence, late: null },
    )
    assert.ok(row.endedAt !== null && row.endedAt >= row.startedAt)
  })

  it('a run that was lost without having been asked to stop has no reason', async (stage) => {
    const { first, second, briefMs } = stage
    for (const [task, policy] of [
      ['retried', retry],
      ['given up', { onCrash: 'skip' }],
    ] as const) {
      await first.scheduled.register(task)
      const run = await first.scheduled.run(task, { ttlMs: briefMs })
      await second.scheduled.waitForLapse(task)
      const { mark } = await second.scheduled.inspect(task)
      await second.scheduled.claim(task, { slot: mark, after: mark, ...policy })
      const row = await first.scheduled.row(task, run.slot, 1)
      assert.deepEqual([row.state, row.reason, row.error], ['lost', null, null])
    }
  })

  it('any claim ends it: the task does not run any more, paused or not', async (stage) => {
    const { first, second } = stage
    for (const task of ['running', 'paused']) {
      const run = await cancelledRun(stage, task)
      if (task === 'paused') await first.scheduled.control(task, 'pause')
      const { mark } = await second.scheduled.inspect(task)
      const answer = await second.scheduled.claim(task, { slot: mark, after: mark, ...retry })
      assert.ok(answer.outcome === 'decided', answer.outcome)
      assert.equal(answer.running, null)
      const record = await first.scheduled.inspect(task)
      assert.deepEqual([record.running, record.stop], [null, null])
      assert.equal((await first.scheduled.row(task, run.slot, 1)).reason, 'cancelled')
    }
  })

  it('the resume of a paused task does not bring it back', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    await first.scheduled.control('task', 'pause')
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const skipped = await second.scheduled.claim('task', { slot, after: mark, ...retry })
    assert.equal(skipped.outcome === 'skipped' && skipped.reason, 'paused')
    await first.scheduled.control('task', 'resume')
    const next = await second.scheduled.run('task', retry)
    assert.ok(next.slot > run.slot && next.attempt === 1)
  })

  it('its own token ends it as little as that of any lapsed run', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    const claim = { slot: run.slot, after: run.slot - 1, token: run.token, ...retry }
    const answer = await first.scheduled.claim('task', claim)
    assert.ok(answer.outcome === 'decided', answer.outcome)
    assert.equal(answer.running?.fence, run.fence)
    assert.equal((await second.scheduled.row('task', run.slot, 1)).state, 'running')
  })

  it('a retry that was asked to stop is retried no further', async (stage) => {
    const { first, second, briefMs } = stage
    await first.scheduled.register('task')
    const heir = await cancelled(stage, async () => {
      await first.scheduled.run('task', { ttlMs: briefMs })
      await second.scheduled.waitForLapse('task')
      return second.scheduled.takeOver('task', { ttlMs: 3 * briefMs })
    })
    const next = await first.scheduled.run('task', retry)
    assert.deepEqual([next.attempt, next.slot > heir.slot], [1, true])
    const row = await first.scheduled.row('task', heir.slot, 2)
    assert.deepEqual([row.state, row.reason], ['lost', 'cancelled'])
  })

  it('if its node ends it after all, before a claim does, it is done', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    assert.equal(await first.scheduled.complete(run, { outcome: 'abandoned', error: 'stopped' }), 'completed')
    const next = await second.scheduled.run('task', retry)
    assert.ok(next.slot > run.slot)
    const row = await second.scheduled.row('task', run.slot, 1)
    assert.deepEqual([row.state, row.reason, row.error], ['abandoned', null, 'stopped'])
  })

  it('if its node ends it after a claim did, it stays lost, and that is recorded as late', async (stage) => {
    const { first, second } = stage
    const run = await cancelledRun(stage)
    await second.scheduled.run('task', retry)
    assert.equal(await first.scheduled.complete(run, { outcome: 'abandoned', error: 'stopped' }), 'late')
    const row = await second.scheduled.row('task', run.slot, 1)
    assert.deepEqual([row.state, row.reason, row.error, row.late], ['lost', 'cancelled', by, 'abandoned'])
  })

  it('the run after it is not asked to stop', async (stage) => {
    const { second } = stage
    await cancelledRun(stage)
    const next = await second.scheduled.run('task', retry)
    const refreshed = await second.scheduled.refresh(next, longMs)
    assert.ok(refreshed.outcome === 'held')
    assert.equal(refreshed.stop, null)
    assert.equal((await second.scheduled.inspect('task')).stop, null)
  })
})

/** A run that was asked to stop and has lapsed. */
async function cancelledRun(stage: Stage, task = 'task'): Promise<Run> {
  await stage.first.scheduled.register(task)
  return cancelled(stage, () => stage.first.scheduled.run(task, { ttlMs: 3 * stage.briefMs }))
}

async function cancelled({ first, second }: Stage, start: () => Promise<Run>): Promise<Run> {
  for (;;) {
    const run = await start()
    const { task, fence } = run
    const answer = await second.scheduled.control(task, 'cancel', { fence, by })
    await second.scheduled.waitForLapse(task)
    if (answer.outcome === 'applied') return run
    // Only a machine that slept between the two calls may have let the run lapse.
    assert.equal(answer.outcome, 'idle')
    await first.scheduled.complete(run)
  }
}
