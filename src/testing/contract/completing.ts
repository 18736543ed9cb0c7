import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs } from './stage.ts'
import { completionOf, type Run } from './task-actor.ts'

export const completing: readonly ContractBehaviour[] = group('tasks: completing', (it) => {
  for (const outcome of ['succeeded', 'failed', 'abandoned'] as const) {
    it(`a run that ${outcome === 'abandoned' ? 'was abandoned' : outcome} is in the log as ${outcome}`, async ({
      first,
      second,
    }) => {
      await first.scheduled.register('task')
      const run = await first.scheduled.run('task')
      const error = outcome === 'succeeded' ? null : `Error: it ${outcome}`
      assert.equal(await first.scheduled.complete(run, { outcome, error }), 'completed')
      const row = await second.scheduled.row('task', run.slot, 1)
      assert.deepEqual(
        { state: row.state, error: row.error, reason: row.reason, fence: row.fence, late: row.late },
        { state: outcome, error, reason: null, fence: run.fence, late: null },
      )
      assert.ok(row.endedAt !== null && row.endedAt >= row.startedAt)
    })
  }

  it('a claimed slot that was skipped after all is in the log with the reason', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    assert.equal(await first.scheduled.complete(run, { outcome: 'skipped', reason: 'lock' }), 'completed')
    const row = await second.scheduled.row('task', run.slot, 1)
    assert.deepEqual([row.state, row.reason], ['skipped', 'lock'])
  })

  it('after its completion the task is idle, and the mark stays', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.complete(run)
    const record = await second.scheduled.inspect('task')
    assert.equal(record.running, null)
    assert.equal(record.mark, run.slot)
    assert.equal(record.stop, null)
  })

  it('a completion that is sent again answers completed again, and changes nothing', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.complete(run)
    const row = await first.scheduled.row('task', run.slot, 1)
    await first.scheduled.waitFor((row.endedAt as number) + 2)
    assert.equal(await second.scheduled.complete(run), 'completed')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.deepEqual(await first.scheduled.row('task', run.slot, 1), row)
  })

  it('a completion that is sent again never ends the next run', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.complete(run)
    const next = await second.scheduled.run('task')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal((await second.scheduled.refresh(next)).outcome, 'held')
    assert.equal((await first.scheduled.row('task', next.slot, 1)).state, 'running')
  })

  it('a completion says when the store took it', async ({ first }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const before = await first.scheduled.poll()
    const [answer] = await first.scheduled.completeAll([completionOf(run)])
    assert.ok(answer?.outcome === 'completed')
    assert.ok(answer.now >= before.now && answer.now < before.now + 10_000)
  })

  it('only the fence is compared: a completion needs no token and no unexpired lease', async ({
    first,
    second,
    briefMs,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: briefMs })
    await first.scheduled.waitForLapse('task')
    assert.equal(await second.scheduled.complete(run), 'completed')
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'succeeded')
  })

  it('a completion under another fence is late and disturbs nobody', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    for (const fence of [run.fence - 1, run.fence + 1]) {
      assert.equal(await second.scheduled.complete({ ...run, fence }), 'late')
    }
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'running')
    assert.equal(await first.scheduled.complete(run), 'completed')
  })

  it('the completion of a run that never was is late, and nothing is put into the log', async ({ first }) => {
    const never = { task: 'task', slot: 1_000, attempt: 1, fence: 7 }
    assert.equal(await first.scheduled.complete({ ...never, task: 'unknown' }), 'late')
    assert.deepEqual(await first.scheduled.log('unknown'), [])
    await first.scheduled.register('task')
    assert.equal(await first.scheduled.complete(never), 'late')
    assert.deepEqual(
      (await first.scheduled.log('task')).map((row) => row.state),
      ['registered'],
    )
    const run = await first.scheduled.run('task')
    assert.equal(await first.scheduled.complete({ ...run, attempt: 2 }), 'late')
    assert.equal((await first.scheduled.log('task')).length, 2)
  })

  it('a completion is late as often as it is sent, once the run was fenced out', async ({
    first,
    second,
    briefMs,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: briefMs })
    await first.scheduled.waitForLapse('task')
    const heir = await second.scheduled.takeOver('task')
    for (let round = 0; round < 3; round++) {
      assert.equal(await first.scheduled.complete(run, { outcome: 'failed', error: 'boom' }), 'late')
    }
    assert.equal((await second.scheduled.refresh(heir)).outcome, 'held')
    assert.equal(await second.scheduled.complete(heir), 'completed')
    assert.equal(await first.scheduled.complete(run, { outcome: 'failed' }), 'late')
    const row = await first.scheduled.row('task', run.slot, 1)
    assert.deepEqual([row.state, row.late], ['lost', 'failed'])
  })

  it('a paused and an edited task’s run is completed like any other', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await second.scheduled.control('task', 'pause')
    await second.scheduled.register('task', { fingerprint: 'new' })
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal((await second.scheduled.row('task', run.slot, 1)).state, 'succeeded')
  })

  it('an error’s text arrives as it was', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const error = `Error: "it's" \\ broken \n\tat $1 %s 😀 ${'ü'.repeat(1_900)}`
    assert.ok(Buffer.byteLength(error) <= 4_000)
    await first.scheduled.complete(run, { outcome: 'failed', error })
    assert.equal((await second.scheduled.row('task', run.slot, 1)).error, error)
  })

  it('completions are answered item by item, in order', async ({ first, second }) => {
    const runs: Run[] = []
    for (const task of ['z', 'a', 'm']) {
      await first.scheduled.register(task)
      runs.push(await first.scheduled.run(task))
    }
    const [z, a, m] = runs as [Run, Run, Run]
    await first.scheduled.complete(a)
    const answers = await second.scheduled.completeAll([
      completionOf({ ...z, fence: z.fence + 1 }),
      completionOf(a),
      completionOf({ ...m, task: 'unknown' }),
      completionOf(m, { outcome: 'failed', error: 'm failed' }),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['late', 'completed', 'late', 'completed'],
    )
    assert.equal((await first.scheduled.row('m', m.slot, 1)).error, 'm failed')
    assert.equal((await first.scheduled.row('a', a.slot, 1)).error, null)
    assert.equal((await first.scheduled.refresh(z, longMs)).outcome, 'held')
  })
})
