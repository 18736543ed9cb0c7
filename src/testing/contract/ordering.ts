import assert from 'node:assert/strict'
import type { ContractBehaviour } from '../contract-subject.ts'
import { group, longMs, type Stage } from './stage.ts'

const by = 'ops: "once more" \\ 😀'
const manual = { reason: 'manual', gap: by } as const

/** Manual runs: what operators order, beside the slots of the schedule. */
export const ordering: readonly ContractBehaviour[] = group('tasks: manual runs', (it) => {
  it('orders are kept as they were written, and every answer about the task tells them', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    const text = '[{"id":"😀 \\"quoted\\"","at":1}]'
    const { version } = await second.scheduled.poll()
    assert.deepEqual(await order(stage, '', text), { outcome: 'applied', version: version + 1 })
    assert.equal((await second.scheduled.inspect('task')).orders, text)
    const registered = await first.scheduled.register('task')
    assert.equal(registered.outcome === 'current' && registered.orders, text)
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const claimed = await first.scheduled.claim('task', { slot, after: mark })
    assert.equal(claimed.outcome === 'granted' && claimed.orders, text)
  })

  it('orders that are others than was thought are left alone', async (stage) => {
    await stage.first.scheduled.register('task')
    await order(stage, '', 'one')
    assert.deepEqual(await order(stage, '', 'two'), { outcome: 'changed' })
    assert.equal((await stage.second.scheduled.inspect('task')).orders, 'one')
    assert.equal((await order(stage, 'one', 'one, two')).outcome, 'applied')
    assert.equal((await stage.first.scheduled.inspect('task')).orders, 'one, two')
  })

  it('an order whose answer was lost is not applied twice', async (stage) => {
    await stage.first.scheduled.register('task')
    const request = { requestId: 'r1', orders: { before: '', after: 'one' } }
    assert.equal((await stage.first.scheduled.control('task', 'order', request)).outcome, 'applied')
    assert.equal((await stage.second.scheduled.control('task', 'order', request)).outcome, 'repeated')
  })

  it('a manual run is granted once, whoever claims it, and never touches the mark', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    await order(stage, '', 'one')
    const { mark, now } = await first.scheduled.inspect('task')
    const slot = Math.floor(now)
    const claim = { slot, after: mark, orders: { before: 'one', after: '' }, ...manual }
    const answers = await Promise.all([first, second].map((node) => node.scheduled.claim('task', claim)))
    assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), ['behind', 'granted'])
    const granted = answers.find(({ outcome }) => outcome === 'granted')
    assert.ok(granted?.outcome === 'granted')
    assert.deepEqual([granted.slot, granted.attempt, granted.mark, granted.orders], [slot, 1, mark, ''])
    const row = await second.scheduled.row('task', slot, 1)
    assert.deepEqual(
      { state: row.state, reason: row.reason, after: row.after, gap: row.gap, fence: row.fence },
      { state: 'running', reason: 'manual', after: slot, gap: by, fence: granted.fence },
    )
  })

  it('its row says to the end that it was manual', async (stage) => {
    const run = await manualRun(stage)
    assert.equal((await stage.second.scheduled.refresh(run)).outcome, 'held')
    assert.equal(await stage.second.scheduled.complete(run), 'completed')
    const row = await stage.first.scheduled.row('task', run.slot, run.attempt)
    assert.deepEqual([row.state, row.reason, row.gap], ['succeeded', 'manual', by])
  })

  it('a slot that has been run is run again as its next attempt, under a greater fence', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    const done = await first.scheduled.run('task')
    await first.scheduled.complete(done)
    await order(stage, '', 'again')
    const claim = { slot: done.slot, after: done.mark, orders: { before: 'again', after: '' }, ...manual }
    const answer = await second.scheduled.claim('task', claim)
    assert.ok(answer.outcome === 'granted', answer.outcome)
    assert.deepEqual([answer.slot, answer.attempt], [done.slot, 2])
    assert.ok(answer.fence > done.fence)
    assert.equal((await first.scheduled.row('task', done.slot, 1)).state, 'succeeded')
  })

  it('runs although the task is paused', async (stage) => {
    await stage.first.scheduled.register('task')
    await stage.first.scheduled.control('task', 'pause')
    assert.equal((await manualRun(stage)).attempt, 1)
  })

  it('waits for the run under way, and slots that come due are overlapped by it', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await order(stage, '', 'one')
    const claim = { slot: run.slot, after: run.mark, orders: { before: 'one', after: '' }, ...manual }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'held')
    assert.equal((await second.scheduled.inspect('task')).orders, 'one')
    await first.scheduled.complete(run)
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'granted')
    const [mark, slot] = await first.scheduled.slots('task', 1)
    const overlapped = await first.scheduled.claim('task', { slot, after: mark, overlap: 'skip' })
    assert.equal(overlapped.outcome === 'skipped' && overlapped.reason, 'overlap')
  })

  it('is early before its slot has come, and behind where the orders are others', async (stage) => {
    const { first } = stage
    await first.scheduled.register('task')
    await order(stage, '', 'one')
    const { now } = await first.scheduled.poll()
    const later = { slot: Math.floor(now) + 10 * longMs, after: 0, ...manual }
    const early = await first.scheduled.claim('task', { ...later, orders: { before: 'one', after: '' } })
    assert.equal(early.outcome, 'early')
    const behind = await first.scheduled.claim('task', { ...later, orders: { before: 'two', after: '' } })
    assert.equal(behind.outcome, 'behind')
    assert.equal((await first.scheduled.inspect('task')).orders, 'one')
  })

  it('an order that comes to nothing is dropped without a row', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('task')
    await order(stage, '', 'none')
    const { now, mark } = await first.scheduled.inspect('task')
    const claim = { slot: Math.floor(now), after: mark, decide: 'miss', ...manual } as const
    const answer = await second.scheduled.claim('task', { ...claim, orders: { before: 'none', after: '' } })
    assert.ok(answer.outcome === 'skipped', answer.outcome)
    assert.deepEqual([answer.mark, answer.orders, answer.reason], [mark, '', 'manual'])
    assert.equal((await first.scheduled.log('task')).length, 1)
  })

  it('asked again under its token it is the same run', async (stage) => {
    const { first } = stage
    await first.scheduled.register('task')
    await order(stage, '', 'one')
    const { now, mark } = await first.scheduled.inspect('task')
    const token = 'manual-token-000000000000'
    const claim = {
      slot: Math.floor(now),
      after: mark,
      token,
      orders: { before: 'one', after: '' },
      ...manual,
    }
    const granted = await first.scheduled.claim('task', claim)
    const again = await first.scheduled.claim('task', claim)
    assert.ok(granted.outcome === 'granted' && again.outcome === 'granted')
    assert.deepEqual([again.slot, again.attempt, again.fence], [granted.slot, granted.attempt, granted.fence])
  })

  it('a lapsed one is retried or lost like any other run', async (stage) => {
    const { first, second, briefMs } = stage
    for (const onCrash of ['skip', 'retry'] as const) {
      const task = `task ${onCrash}`
      await first.scheduled.register(task)
      await order(stage, '', 'one', task)
      const { mark } = await first.scheduled.inspect(task)
      const orders = { before: 'one', after: '' }
      const claim = { slot: mark, after: mark, ttlMs: briefMs, orders, ...manual }
      const granted = await first.scheduled.claim(task, claim)
      assert.ok(granted.outcome === 'granted')
      await second.scheduled.waitForLapse(task)
      const [after, slot] = await second.scheduled.slots(task, 1)
      const next = await second.scheduled.claim(task, { slot, after, onCrash, maxAttempts: 3 })
      assert.equal(next.outcome, onCrash === 'retry' ? 'takeover' : 'granted')
      const row = await first.scheduled.row(task, granted.slot, 1)
      assert.deepEqual([row.state, row.reason], ['lost', 'manual'])
    }
  })
})

function order(stage: Stage, before: string, after: string, task = 'task') {
  return stage.first.scheduled.control(task, 'order', { orders: { before, after } })
}

async function manualRun(stage: Stage) {
  const { first } = stage
  await first.scheduled.register('task')
  await order(stage, '', 'one')
  const { now, mark } = await first.scheduled.inspect('task')
  return first.scheduled.run('task', {
    slot: Math.floor(now),
    after: mark,
    orders: { before: 'one', after: '' },
    ...manual,
  })
}
