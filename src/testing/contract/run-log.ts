import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, type Stage } from './stage.ts'
import { until } from './until.ts'

export const runLog: readonly ContractBehaviour[] = group('tasks: log and records', (it) => {
  it('the log of an unknown task is empty', async ({ first }) => {
    assert.deepEqual(await first.scheduled.log('unknown'), [])
  })

  it('the log shows the latest slot first', async (stage) => {
    const slots = await fourRuns(stage)
    const rows = await stage.second.scheduled.log('task')
    assert.deepEqual(
      rows.map((row) => row.slot),
      [...slots.toReversed(), (slots[0] as number) - 1],
    )
  })

  it('within a slot the log shows the latest attempt first', async ({ first, second, briefMs }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { ttlMs: briefMs })
    await second.scheduled.waitForLapse('task')
    await second.scheduled.takeOver('task', { ttlMs: briefMs })
    await second.scheduled.waitForLapse('task')
    await first.scheduled.takeOver('task')
    const rows = await first.scheduled.log('task', { from: run.slot })
    assert.deepEqual(
      rows.map((row) => row.attempt),
      [3, 2, 1],
    )
  })

  it('a limit keeps the latest rows', async (stage) => {
    const slots = await fourRuns(stage)
    const rows = await stage.second.scheduled.log('task', { limit: 2 })
    assert.deepEqual(
      rows.map((row) => row.slot),
      slots.toReversed().slice(0, 2),
    )
  })

  it('from is included and to is not', async (stage) => {
    const slots = await fourRuns(stage)
    const [, two, three, four] = slots as [number, number, number, number]
    const log = async (query: { from?: number; to?: number; limit?: number }) =>
      (await stage.second.scheduled.log('task', query)).map((row) => row.slot)
    assert.deepEqual(await log({ from: three }), [four, three])
    assert.deepEqual(await log({ from: two, to: four }), [three, two])
    assert.deepEqual(await log({ from: two, to: four, limit: 1 }), [three])
    assert.deepEqual(await log({ from: two, to: two }), [])
  })

  it('the log of one task shows no other task', async ({ first }) => {
    for (const task of ['one', 'one ', 'One', 'o']) await first.scheduled.register(task)
    const run = await first.scheduled.run('one')
    assert.deepEqual(
      (await first.scheduled.log('one ')).map((row) => row.task),
      ['one '],
    )
    assert.deepEqual(
      (await first.scheduled.log('one')).map((row) => row.slot),
      [run.slot, run.slot - 1],
    )
  })

  it('the token is never in the log nor in the record', async ({ first }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    assert.ok(!JSON.stringify(await first.scheduled.log('task')).includes(run.token))
    assert.ok(!JSON.stringify(await first.scheduled.inspectAll(null)).includes(run.token))
  })

  it('every slot has a reason: the rows that moved the mark follow each other without a gap (G6)', async (stage) => {
    const { first, second } = stage
    const { mark: registeredAt } = (await first.scheduled.register('task')) as { readonly mark: number }
    const [, ...slots] = await first.scheduled.slots('task', 40)
    const at = (offset: number): number => slots[offset - 1] as number
    await first.scheduled.complete(await first.scheduled.run('task', { after: registeredAt, slot: at(1) }))
    await second.scheduled.complete(
      await second.scheduled.run('task', { after: at(1), slot: at(5), gap: 'down' }),
    )
    await first.scheduled.claim('task', { after: at(5), slot: at(6), decide: 'miss', reason: 'late' })
    await first.scheduled.control('task', 'pause')
    await second.scheduled.claim('task', { after: at(6), slot: at(9), gap: 'down' })
    await first.scheduled.control('task', 'resume')
    const run = await first.scheduled.run('task', { after: at(9), slot: at(10) })
    await second.scheduled.claim('task', { after: at(10), slot: at(11) })
    await second.scheduled.claim('task', { after: at(10), slot: at(14) })
    await first.scheduled.complete(run)
    await first.scheduled.complete(
      await first.scheduled.run('task', { after: at(11), slot: at(40), gap: 'down' }),
    )
    const rows = (await second.scheduled.log('task')).toReversed()
    assert.deepEqual(
      rows.map(({ state, reason }) => (reason === null ? state : `${state}: ${reason}`)),
      [
        'registered',
        'succeeded',
        'succeeded',
        'missed: late',
        'skipped: paused',
        'succeeded',
        'skipped: overlap',
        'succeeded',
      ],
    )
    for (const [index, row] of rows.entries()) {
      if (index === 0) continue
      assert.equal(row.after, rows[index - 1]?.slot, `row ${index} follows the one before`)
      assert.equal(row.gap, row.slot - row.after > 1 ? 'down' : '')
    }
    assert.equal(rows.at(-1)?.slot, (await first.scheduled.inspect('task')).mark)
  })

  it('a record shows everything that operators may know', async ({ first, second }) => {
    await first.scheduled.register('task', { fingerprint: 'fp', definition: '{"every":"5s"}' })
    const record = await second.scheduled.inspect('task')
    assert.equal(record.task, 'task')
    assert.equal(record.fingerprint, 'fp')
    assert.equal(record.definition, '{"every":"5s"}')
    assert.equal(record.generation, 1)
    assert.equal(record.paused, false)
    assert.equal(record.pausedBy, null)
    assert.equal(record.running, null)
    assert.equal(record.stop, null)
    assert.ok(Math.abs(record.registeredAt - record.mark) <= 5)
    assert.ok(record.now >= record.registeredAt && record.now < record.registeredAt + 10_000)
    assert.ok(record.attendedUntil > record.now)
  })

  it('records are answered in the order in which they were asked for, unknown ones as null', async ({
    first,
    second,
  }) => {
    for (const task of ['m', 'a', 'z']) await first.scheduled.register(task)
    const records = await second.scheduled.inspectAll(['z', 'unknown', 'a', 'm'])
    assert.deepEqual(
      records.map((record) => record?.task ?? null),
      ['z', null, 'a', 'm'],
    )
  })

  it('all records of the namespace are shown by name', async ({ first, second, enter, namespace }) => {
    assert.deepEqual(await first.scheduled.inspectAll(null), [])
    for (const task of ['m', 'Z', 'a', 'z', '_', '10', '9', 'a b', 'a-b'])
      await first.scheduled.register(task)
    await enter('first', `${namespace}-other`).scheduled.register('theirs')
    const tasks = (await second.scheduled.inspectAll(null)).map((record) => record?.task)
    assert.deepEqual(tasks, ['10', '9', 'Z', '_', 'a', 'a b', 'a-b', 'm', 'z'])
  })

  it('looking changes nothing', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const before = await first.scheduled.inspect('task')
    await second.scheduled.log('task')
    await second.scheduled.inspectAll(null)
    await second.scheduled.poll()
    const after = await first.scheduled.inspect('task')
    const timeless = { now: 0, running: null }
    assert.deepEqual({ ...after, ...timeless }, { ...before, ...timeless })
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
  })

  it('a purge deletes rows that ended long enough ago, and says how many', async (stage) => {
    const { first, second } = stage
    await fourRuns(stage)
    const run = await first.scheduled.run('task')
    let deleted = 0
    await until(
      'all ended rows are gone',
      async () => {
        deleted += await second.scheduled.purge(0)
        assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'running')
        return first.scheduled.log('task')
      },
      (rows) => rows.length === 1,
    )
    assert.equal(deleted, 5)
    assert.equal(await second.scheduled.purge(0), 0)
  })

  it('a purge leaves what ended lately', async (stage) => {
    await fourRuns(stage)
    assert.equal(await stage.second.scheduled.purge(longMs), 0)
    assert.equal((await stage.second.scheduled.log('task')).length, 5)
  })

  it('a purge keeps to its limit', async (stage) => {
    const slots = await fourRuns(stage)
    await stage.first.scheduled.waitFor((slots.at(-1) as number) + 50)
    const deleted = await until(
      'a row is old enough',
      () => stage.second.scheduled.purge(0, 2),
      (count) => count > 0,
    )
    assert.ok(deleted <= 2)
    assert.equal((await stage.second.scheduled.log('task')).length, 5 - deleted)
  })

  it('a purge deletes rows of lost, skipped and missed slots as well', async (stage) => {
    const { first, second, briefMs } = stage
    await first.scheduled.register('task')
    await first.scheduled.run('task', { ttlMs: briefMs })
    await first.scheduled.waitForLapse('task')
    const run = await second.scheduled.run('task')
    const [mark, one, two] = (await second.scheduled.slots('task', 2)) as [number, number, number]
    await second.scheduled.claim('task', { slot: one, after: mark })
    await second.scheduled.claim('task', { slot: two, after: one, decide: 'miss', reason: 'late' })
    await until(
      'only the run under way is left',
      () => second.scheduled.purge(0).then(() => first.scheduled.log('task')),
      (rows) => rows.length === 1,
    )
    assert.equal((await first.scheduled.log('task'))[0]?.slot, run.slot)
  })

  it('a purge never deletes a task: what was decided stays decided', async (stage) => {
    const { first, second } = stage
    const slots = await fourRuns(stage)
    await until(
      'the log is empty',
      () => second.scheduled.purge(0).then(() => first.scheduled.log('task')),
      (rows) => rows.length === 0,
    )
    await second.purgeAll()
    const slot = slots.at(-1) as number
    assert.equal((await second.scheduled.claim('task', { slot, after: slot - 1 })).outcome, 'decided')
    assert.equal((await first.scheduled.register('task')).outcome, 'current')
  })

  it('a purge concerns its own namespace only', async (stage) => {
    const { first, enter, namespace } = stage
    await fourRuns(stage)
    const stranger = enter('second', `${namespace}-other`)
    assert.equal(await stranger.scheduled.purge(0), 0)
    assert.equal((await first.scheduled.log('task')).length, 5)
  })
})

/** Registers the task and runs four slots, each to its end; answers the slots. */
async function fourRuns({ first, second }: Stage): Promise<number[]> {
  await first.scheduled.register('task')
  const slots: number[] = []
  for (let round = 0; round < 4; round++) {
    const node = round % 2 ? first : second
    const run = await node.scheduled.run('task')
    await node.scheduled.complete(run)
    slots.push(run.slot)
  }
  return slots
}
