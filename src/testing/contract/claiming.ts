import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, someKeys } from './stage.ts'
import { claimOf } from './task-actor.ts'
import { newToken } from './tokens.ts'

export const claiming: readonly ContractBehaviour[] = group('tasks: claiming', (it) => {
  it('a claim on an unknown task registers it and grants nothing', async ({ first, second }) => {
    const { now } = await first.scheduled.poll()
    const answer = await first.scheduled.claim('task', { slot: now - 5, after: now - 10 })
    assert.ok(answer.outcome === 'unregistered', answer.outcome)
    assert.ok(answer.mark >= Math.floor(now), 'the mark is the store’s time: nothing of the past is ever run')
    assert.equal(answer.generation, 1)
    assert.equal(answer.running, null)
    const record = await second.scheduled.inspect('task')
    assert.equal(record.mark, answer.mark)
    assert.equal(record.running, null)
    assert.deepEqual(
      (await second.scheduled.log('task')).map((row) => row.state),
      ['registered'],
    )
  })

  it('a slot that ran is not run again after the record was lost', ['raw forgetTask'], async (stage) => {
    const { first, second, raw, namespace } = stage
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.complete(run)
    await raw.forgetTask(namespace, 'task')
    const claim = { slot: run.slot, after: run.slot - 1 }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'unregistered')
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'decided')
  })

  it(
    'a run whose record was lost cannot be refreshed, and nothing is put back',
    ['raw forgetTask'],
    async (stage) => {
      const { first, raw, namespace } = stage
      await first.scheduled.register('task')
      const run = await first.scheduled.run('task')
      await raw.forgetTask(namespace, 'task')
      assert.equal((await first.scheduled.refresh(run)).outcome, 'lost')
      assert.deepEqual(await first.scheduled.inspectAll(['task']), [null])
    },
  )

  it('a claim under another schedule is superseded and changes nothing', async ({ first, second }) => {
    await first.scheduled.register('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await second.scheduled.claim('task', { slot, after: mark, fingerprint: 'other' })
    assert.ok(answer.outcome === 'superseded', answer.outcome)
    assert.equal(answer.mark, mark)
    assert.equal(answer.running, null)
    assert.equal((await first.scheduled.inspect('task')).mark, mark)
  })

  it('a claim under an old schedule is superseded even for the run it has', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await second.scheduled.register('task', { fingerprint: 'new' })
    const again = { slot: run.slot, after: run.slot - 1, token: run.token }
    assert.equal((await first.scheduled.claim('task', again)).outcome, 'superseded')
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
  })

  it('a slot after the mark is granted', async ({ first, second }) => {
    await first.scheduled.register('task')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const answer = await first.scheduled.claim('task', { slot, after: mark, holder: '{"instance":"me"}' })
    assert.ok(answer.outcome === 'granted', answer.outcome)
    assert.equal(answer.slot, slot)
    assert.equal(answer.attempt, 1)
    assert.equal(answer.mark, slot)
    assert.equal(answer.paused, false)
    assert.ok(Number.isSafeInteger(answer.fence))
    assert.ok(answer.remainingMs > longMs - 10_000 && answer.remainingMs <= longMs)
    assert.equal(answer.running?.fence, answer.fence)
    const record = await second.scheduled.inspect('task')
    assert.equal(record.mark, slot)
    assert.deepEqual(
      { ...record.running, remainingMs: 0 },
      { slot, attempt: 1, fence: answer.fence, holder: '{"instance":"me"}', remainingMs: 0 },
    )
  })

  it('a run’s fence is the store’s clock in microseconds', async ({ first }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const { now } = await first.scheduled.poll()
    assert.ok(Math.abs(run.fence / 1_000 - now) < 5_000, `fence ${run.fence} at ${now}`)
  })

  it('runs’ fences grow from slot to slot', async ({ first, second }) => {
    await first.scheduled.register('task')
    let last = 0
    for (let round = 0; round < 100; round++) {
      const node = round % 2 ? first : second
      const run = await node.scheduled.run('task')
      assert.ok(Number.isSafeInteger(run.fence) && run.fence > last, `fence ${run.fence} after ${last}`)
      last = run.fence
      assert.equal(await node.scheduled.complete(run), 'completed')
    }
  })

  it('a grant is in the log at once', async ({ first, second }) => {
    await first.scheduled.register('task')
    const [mark, , slot] = await first.scheduled.slots('task', 2)
    const wish = { after: mark, slot: slot as number, gap: 'down', holder: '{"instance":"me"}' }
    const run = await first.scheduled.run('task', wish)
    const { startedAt, ...row } = await second.scheduled.row('task', run.slot, 1)
    assert.deepEqual(row, {
      task: 'task',
      slot: run.slot,
      attempt: 1,
      state: 'running',
      reason: null,
      after: mark,
      gap: 'down',
      fence: run.fence,
      holder: '{"instance":"me"}',
      endedAt: null,
      error: null,
      late: null,
    })
    assert.ok(startedAt >= run.slot && startedAt < run.slot + 10_000)
  })

  it('asked again with the same token, the claim is granted again with the same fence', async ({
    first,
    second,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const again = await second.scheduled.claim('task', {
      slot: run.slot,
      after: run.slot - 1,
      token: run.token,
    })
    assert.ok(again.outcome === 'granted', again.outcome)
    assert.deepEqual([again.slot, again.attempt, again.fence], [run.slot, 1, run.fence])
    assert.equal((await first.scheduled.log('task')).length, 2)
  })

  it('asked again with the same token, the expiry is re-armed and never moves back', async ({
    first,
    briefMs,
  }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const again = { slot: run.slot, after: run.slot - 1, token: run.token }
    const longer = await first.scheduled.claim('task', { ...again, ttlMs: 2 * longMs })
    assert.ok(longer.outcome === 'granted' && longer.remainingMs > longMs)
    const shorter = await first.scheduled.claim('task', { ...again, ttlMs: briefMs })
    assert.ok(shorter.outcome === 'granted' && shorter.remainingMs > longMs)
  })

  it('asked again with the same token, the claim is granted again although the task was paused', async (stage) => {
    const { first } = stage
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await first.scheduled.control('task', 'pause')
    const again = await first.scheduled.claim('task', {
      slot: run.slot,
      after: run.slot - 1,
      token: run.token,
    })
    assert.ok(again.outcome === 'granted' && again.paused)
  })

  it('a claim attends to nothing but its slot: it does not keep an old schedule alive', async ({
    first,
    briefMs,
  }) => {
    await first.scheduled.register('task', { attendMs: briefMs })
    const { attendedUntil } = await first.scheduled.inspect('task')
    await first.scheduled.run('task', { attendMs: 5 * longMs })
    assert.equal((await first.scheduled.inspect('task')).attendedUntil, attendedUntil)
  })

  it('claims are answered item by item, in order', async ({ first, second }) => {
    for (const task of ['z-free', 'a-decided', 'm-running', 'b-early', 'c-behind', 'y-paused']) {
      await first.scheduled.register(task)
    }
    const done = await first.scheduled.run('a-decided')
    await first.scheduled.complete(done)
    await first.scheduled.run('m-running')
    await first.scheduled.control('y-paused', 'pause')
    const marks = new Map<string, number>()
    for (const record of await first.scheduled.inspectAll(null))
      marks.set(record?.task as string, record?.mark as number)
    const slot = Math.max(...marks.values()) + 1
    await first.scheduled.waitFor(slot + 1)
    const claim = (task: string, wish = {}) =>
      claimOf(task, { slot, after: marks.get(task) as number, ...wish })
    const answers = await second.scheduled.claimAll([
      claim('z-free'),
      claim('unknown', { after: slot - 1 }),
      claim('m-running', { overlap: 'queue' }),
      claim('b-early', { slot: slot + 10 * longMs }),
      claim('a-decided', { slot: done.slot }),
      claim('y-paused'),
      claim('c-behind', { after: slot - 9_999 }),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['granted', 'unregistered', 'held', 'early', 'decided', 'skipped', 'behind'],
    )
    assert.deepEqual(
      answers.map((answer) => 'mark' in answer && answer.mark === slot),
      [true, false, false, false, false, true, false],
    )
  })

  it('as many slots as the driver takes are claimed, refreshed and completed at once', async (stage) => {
    const { first, second, abilities } = stage
    const tasks = someKeys(abilities.maxBatch, 'task')
    await first.scheduled.claimAll(tasks.map((task) => claimOf(task, { slot: 2, after: 1 })))
    const marks = (await second.scheduled.inspectAll(tasks)).map((record) => record?.mark as number)
    const slot = Math.max(...marks) + 1
    await first.scheduled.waitFor(slot)
    const claims = tasks.map((task, index) =>
      claimOf(task, { slot, after: marks[index] as number, token: newToken() }),
    )
    const granted = await second.scheduled.claimAll(claims)
    const runs = granted.map((answer, index) => {
      assert.ok(answer.outcome === 'granted', answer.outcome)
      return { ...(claims[index] as (typeof claims)[number]), ...answer }
    })
    const refreshed = await first.scheduled.refreshAll(
      runs.map(({ task, token }) => ({ task, token, ttlMs: longMs })),
    )
    assert.deepEqual(new Set(refreshed.map(({ outcome }) => outcome)), new Set(['held']))
    const completed = await first.scheduled.completeAll(
      runs.map(({ task, attempt, fence }) => ({
        task,
        slot,
        attempt,
        fence,
        outcome: 'succeeded',
        reason: null,
        error: null,
      })),
    )
    assert.deepEqual(new Set(completed.map(({ outcome }) => outcome)), new Set(['completed']))
  })
})
