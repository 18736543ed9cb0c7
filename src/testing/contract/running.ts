import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs } from './stage.ts'
import { newToken } from './tokens.ts'
import { until } from './until.ts'

export const running: readonly ContractBehaviour[] = group('tasks: refreshing runs', (it) => {
  it('a run is refreshed, from any connection', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const answer = await second.scheduled.refresh(run, 2 * longMs)
    assert.ok(answer.outcome === 'held')
    assert.equal(answer.stop, null)
    assert.ok(answer.remainingMs > 2 * longMs - 10_000 && answer.remainingMs <= 2 * longMs)
    assert.ok(((await first.scheduled.inspect('task')).running?.remainingMs as number) > longMs)
  })

  it('a refresh never shortens a run’s lease', async ({ first, briefMs }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const answer = await first.scheduled.refresh(run, briefMs)
    assert.ok(answer.outcome === 'held' && answer.remainingMs > longMs - 10_000)
    assert.ok(((await first.scheduled.inspect('task')).running?.remainingMs as number) > longMs - 10_000)
  })

  it('a refreshed run outlives its first ttl (N59)', async ({ first, second, briefMs }) => {
    await first.scheduled.register('task')
    for (;;) {
      const started = performance.now()
      const run = await first.scheduled.run('task', { ttlMs: briefMs })
      const answer = await first.scheduled.refresh(run, longMs)
      // Only a machine that slept between the two calls may have let the run lapse.
      if (answer.outcome === 'lost' && performance.now() - started >= briefMs) continue
      assert.equal(answer.outcome, 'held')
      break
    }
    await first.grant('witness', { ttlMs: briefMs })
    await until(
      'the witness has lapsed',
      () => second.peek('witness'),
      (record) => record === null,
    )
    const [mark, slot] = await second.scheduled.slots('task', 1)
    const claim = { slot, after: mark, onCrash: 'retry', maxAttempts: 9, overlap: 'queue' } as const
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'held')
  })

  it('a refresh under another token is lost, and the run is untouched', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    assert.deepEqual(await second.scheduled.refresh({ task: 'task', token: newToken() }), { outcome: 'lost' })
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
  })

  it('a refresh of a task that nobody knows, or that does not run, is lost and creates nothing', async ({
    first,
  }) => {
    assert.equal((await first.scheduled.refresh({ task: 'unknown', token: newToken() })).outcome, 'lost')
    assert.deepEqual(await first.scheduled.inspectAll(['unknown']), [null])
    await first.scheduled.register('idle')
    assert.equal((await first.scheduled.refresh({ task: 'idle', token: newToken() })).outcome, 'lost')
    assert.equal((await first.scheduled.inspect('idle')).running, null)
  })

  it('a refresh after the completion is lost', async ({ first }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.complete(run)
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
    assert.equal((await first.scheduled.inspect('task')).running, null)
  })

  it('a refresh after the lapse is lost, although nobody took over', async ({ first, briefMs }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: briefMs })
    await first.scheduled.waitForLapse('task')
    assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
    const { running: shown } = await first.scheduled.inspect('task')
    assert.ok(shown === null || shown.remainingMs <= 0)
  })

  it('a refresh keeps slot, attempt and fence', async ({ first }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.refresh(run)
    const record = await first.scheduled.inspect('task')
    assert.deepEqual(
      [record.running?.slot, record.running?.attempt, record.running?.fence],
      [run.slot, 1, run.fence],
    )
    assert.equal(record.mark, run.slot)
  })

  it('a run of forty days is a run of forty days', async ({ first }) => {
    const fortyDaysMs = 40 * 24 * 60 * 60 * 1000
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: fortyDaysMs })
    assert.ok(run.remainingMs > fortyDaysMs - longMs && run.remainingMs <= fortyDaysMs)
    const answer = await first.scheduled.refresh(run, fortyDaysMs)
    assert.ok(answer.outcome === 'held' && answer.remainingMs > fortyDaysMs - longMs)
  })

  it('refreshes of runs are answered item by item, in order', async ({ first, second }) => {
    const runs = new Map<string, { readonly task: string; readonly token: string }>()
    for (const task of ['z', 'a', 'm']) {
      await first.scheduled.register(task)
      runs.set(task, await first.scheduled.run(task))
    }
    await second.scheduled.control('a', 'cancel', { by: 'the operator' })
    const ask = (task: string, token = runs.get(task)?.token ?? newToken()) => ({
      task,
      token,
      ttlMs: longMs,
    })
    const answers = await second.scheduled.refreshAll([
      ask('unknown'),
      ask('z'),
      ask('a'),
      ask('m', newToken()),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['lost', 'held', 'held', 'lost'],
    )
    assert.deepEqual(
      answers.map((answer) => 'stop' in answer && answer.stop !== null),
      [false, false, true, false],
    )
  })
})
