import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs } from './stage.ts'

export const controlling: readonly ContractBehaviour[] = group('tasks: control', (it) => {
  it('the control version of a fresh namespace is 0', async ({ first, second }) => {
    assert.equal((await first.scheduled.poll()).version, 0)
    await first.scheduled.register('task')
    assert.equal((await second.scheduled.poll()).version, 0)
  })

  it('a pause is seen by everybody, with who asked for it', async ({ first, second }) => {
    await first.scheduled.register('task')
    const by = 'ops: "maintenance" \\ \'window\' 😀'
    const answer = await first.scheduled.control('task', 'pause', { by })
    assert.deepEqual(answer, { outcome: 'applied', version: 1 })
    const record = await second.scheduled.inspect('task')
    assert.equal(record.paused, true)
    assert.equal(record.pausedBy, by)
    const registered = await second.scheduled.register('task')
    assert.ok(registered.outcome === 'current' && registered.paused)
  })

  it('a resume ends the pause', async ({ first, second }) => {
    await first.scheduled.register('task')
    await first.scheduled.control('task', 'pause')
    assert.deepEqual(await second.scheduled.control('task', 'resume'), { outcome: 'applied', version: 2 })
    const record = await first.scheduled.inspect('task')
    assert.equal(record.paused, false)
    assert.equal(record.pausedBy, null)
    await first.scheduled.run('task')
  })

  it('a pause does not stop the run under way', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await second.scheduled.control('task', 'pause')
    assert.deepEqual(
      { ...(await first.scheduled.refresh(run)), remainingMs: 0 },
      { outcome: 'held', remainingMs: 0, stop: null },
    )
  })

  it('every applied request raises the version by one, and poll shows it', async ({ first, second }) => {
    await first.scheduled.register('one')
    await first.scheduled.register('two')
    let version = 0
    for (const [task, kind] of [
      ['one', 'pause'],
      ['two', 'pause'],
      ['one', 'resume'],
      ['two', 'resume'],
    ] as const) {
      assert.deepEqual(await second.scheduled.control(task, kind), { outcome: 'applied', version: ++version })
      assert.equal((await first.scheduled.poll()).version, version)
    }
  })

  it('a request applies once: sent again it is repeated, and undoes nothing', async ({ first, second }) => {
    await first.scheduled.register('task')
    await first.scheduled.control('task', 'pause', { requestId: 'one' })
    await second.scheduled.control('task', 'resume', { requestId: 'two' })
    for (const node of [first, second]) {
      const answer = await node.scheduled.control('task', 'pause', { requestId: 'one' })
      assert.deepEqual(answer, { outcome: 'repeated', version: 2 })
    }
    assert.equal((await first.scheduled.inspect('task')).paused, false)
    assert.equal((await first.scheduled.poll()).version, 2)
  })

  it('the last sixteen requests are remembered', async ({ first }) => {
    await first.scheduled.register('task')
    for (let index = 0; index < 16; index++) {
      const kind = index % 2 ? 'resume' : 'pause'
      const answer = await first.scheduled.control('task', kind, { requestId: `request-${index}` })
      assert.equal(answer.outcome, 'applied')
    }
    for (let index = 0; index < 16; index++) {
      const answer = await first.scheduled.control('task', 'pause', { requestId: `request-${index}` })
      assert.equal(answer.outcome, 'repeated', `request-${index}`)
    }
    assert.equal((await first.scheduled.inspect('task')).paused, false)
  })

  it('a request id is compared letter by letter, and belongs to its task', async ({ first }) => {
    for (const task of ['one', 'two']) await first.scheduled.register(task)
    await first.scheduled.control('one', 'pause', { requestId: 'an-id_%' })
    for (const requestId of ['AN-ID_%', 'an-id_', 'an-id__', 'an-id']) {
      assert.equal(
        (await first.scheduled.control('one', 'pause', { requestId })).outcome,
        'applied',
        requestId,
      )
    }
    assert.equal((await first.scheduled.control('two', 'pause', { requestId: 'an-id_%' })).outcome, 'applied')
  })

  it('one request sent by two connections at once is applied once', async ({ first, second }) => {
    await first.scheduled.register('task')
    for (let round = 0; round < 5; round++) {
      const answers = await Promise.all(
        [first, second, first, second].map((node) =>
          node.scheduled.control('task', 'pause', { requestId: `r${round}` }),
        ),
      )
      assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), [
        'applied',
        'repeated',
        'repeated',
        'repeated',
      ])
      assert.equal((await first.scheduled.poll()).version, round + 1)
    }
  })

  it('requests for different tasks at once all count', async ({ first, second }) => {
    const tasks = Array.from({ length: 10 }, (_, index) => `task-${index}`)
    for (const task of tasks) await first.scheduled.register(task)
    const answers = await Promise.all(
      tasks.map((task, index) => (index % 2 ? first : second).scheduled.control(task, 'pause')),
    )
    const versions = answers.map((answer) => (answer.outcome === 'applied' ? answer.version : 0))
    assert.deepEqual(
      versions.toSorted((a, b) => a - b),
      tasks.map((_, index) => index + 1),
    )
    assert.equal((await first.scheduled.poll()).version, tasks.length)
  })

  it('a request for an unknown task is unregistered and changes nothing', async ({ first }) => {
    for (const kind of ['pause', 'resume', 'cancel'] as const) {
      assert.deepEqual(await first.scheduled.control('unknown', kind), { outcome: 'unregistered' })
    }
    assert.equal((await first.scheduled.poll()).version, 0)
    assert.deepEqual(await first.scheduled.inspectAll(['unknown']), [null])
  })

  it('a cancelled run is asked to stop at each refresh', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    const answer = await second.scheduled.control('task', 'cancel', { by: 'ops', fence: run.fence })
    assert.deepEqual(answer, { outcome: 'applied', version: 1 })
    for (let round = 0; round < 2; round++) {
      const refreshed = await first.scheduled.refresh(run)
      assert.ok(refreshed.outcome === 'held')
      assert.equal(typeof refreshed.stop, 'string')
    }
    assert.equal(typeof (await second.scheduled.inspect('task')).stop, 'string')
    assert.equal(await first.scheduled.complete(run, { outcome: 'abandoned' }), 'completed')
  })

  it('without a fence whatever runs is cancelled', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    assert.equal((await second.scheduled.control('task', 'cancel')).outcome, 'applied')
    const refreshed = await first.scheduled.refresh(run)
    assert.ok(refreshed.outcome === 'held' && refreshed.stop !== null)
  })

  it('there is nothing to cancel where nothing runs', async ({ first }) => {
    await first.scheduled.register('task')
    assert.deepEqual(await first.scheduled.control('task', 'cancel'), { outcome: 'idle' })
    await first.scheduled.complete(await first.scheduled.run('task'))
    assert.deepEqual(await first.scheduled.control('task', 'cancel'), { outcome: 'idle' })
    assert.equal((await first.scheduled.poll()).version, 0)
  })

  it('a cancel never hits another run than the operator saw', async ({ first, second }) => {
    await first.scheduled.register('task')
    const old = await first.scheduled.run('task')
    await first.scheduled.complete(old)
    const run = await first.scheduled.run('task')
    assert.deepEqual(await second.scheduled.control('task', 'cancel', { fence: old.fence }), {
      outcome: 'idle',
    })
    const refreshed = await first.scheduled.refresh(run)
    assert.ok(refreshed.outcome === 'held')
    assert.equal(refreshed.stop, null)
  })

  it('the run after a cancelled one is not asked to stop', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await second.scheduled.control('task', 'cancel', { fence: run.fence })
    await first.scheduled.complete(run, { outcome: 'abandoned' })
    assert.equal((await second.scheduled.inspect('task')).stop, null)
    const next = await first.scheduled.run('task')
    const refreshed = await first.scheduled.refresh(next, longMs)
    assert.ok(refreshed.outcome === 'held')
    assert.equal(refreshed.stop, null)
  })

  it('a cancel that is sent again never hits the next run', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task')
    await second.scheduled.control('task', 'cancel', { requestId: 'once' })
    await first.scheduled.complete(run, { outcome: 'abandoned' })
    const next = await first.scheduled.run('task')
    assert.equal(
      (await second.scheduled.control('task', 'cancel', { requestId: 'once' })).outcome,
      'repeated',
    )
    const refreshed = await first.scheduled.refresh(next)
    assert.ok(refreshed.outcome === 'held')
    assert.equal(refreshed.stop, null)
  })

  it('control versions of two namespaces have nothing to do with each other', async ({
    first,
    enter,
    namespace,
  }) => {
    const stranger = enter('second', `${namespace}-other`)
    await first.scheduled.register('task')
    await stranger.scheduled.register('task')
    await first.scheduled.control('task', 'pause')
    assert.equal((await stranger.scheduled.poll()).version, 0)
    assert.equal((await stranger.scheduled.inspect('task')).paused, false)
  })

  it('poll creates nothing and tells the store’s time', async ({ first, second }) => {
    const { now } = await first.scheduled.poll()
    await second.scheduled.register('task')
    const { mark } = await second.scheduled.inspect('task')
    assert.ok(now <= mark + 1 && now > mark - 10_000, `${now} against ${mark}`)
    assert.deepEqual(
      (await first.scheduled.inspectAll(null)).map((record) => record?.task),
      ['task'],
    )
  })
})
