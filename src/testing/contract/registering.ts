import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { group, longMs, someKeys } from './stage.ts'
import { plainFingerprint, registrationOf } from './task-actor.ts'
import { until } from './until.ts'

export const registering: readonly ContractBehaviour[] = group('tasks: registering', (it) => {
  it('an unknown task is created with the store’s time as its mark, so that it never back-fills', async ({
    first,
  }) => {
    const before = await first.scheduled.poll()
    const answer = await first.scheduled.register('task')
    const after = await first.scheduled.poll()
    assert.ok(answer.outcome === 'created', answer.outcome)
    assert.ok(Number.isSafeInteger(answer.mark), `mark ${answer.mark}`)
    assert.ok(
      answer.mark >= Math.floor(before.now) && answer.mark <= after.now,
      JSON.stringify({ before, answer, after }),
    )
    assert.ok(answer.now >= answer.mark && answer.now <= after.now)
    assert.equal(answer.generation, 1)
    assert.equal(answer.paused, false)
    assert.equal(answer.running, null)
  })

  it('an unknown task that is fired already begins just before that slot', async ({ first, second }) => {
    const { now } = await first.scheduled.poll()
    const since = Math.floor(now) - 5_000
    const { mark } = await registered(first, { since })
    assert.equal(mark, since)
    assert.equal((await second.scheduled.register('task', { since: since - 1 })).outcome, 'current')
    assert.equal((await second.scheduled.inspect('task')).mark, since)
    const answer = await second.scheduled.claim('task', { slot: since + 1, after: since })
    assert.equal(answer.outcome, 'granted')
  })

  it('no mark begins in the future, nor goes back for a new schedule', async ({ first, second }) => {
    const { now } = await first.scheduled.poll()
    const { mark } = await registered(first, { since: Math.floor(now) + 60_000 })
    assert.ok(mark <= (await first.scheduled.poll()).now)
    const edited = await second.scheduled.register('task', { fingerprint: 'new', since: mark - 1_000 })
    assert.ok(edited.outcome === 'raised')
    assert.equal(edited.mark, mark)
  })

  it('the log says when a task was registered', async ({ first, second }) => {
    const { mark } = await registered(first)
    const rows = await second.scheduled.log('task')
    assert.equal(rows.length, 1)
    assert.deepEqual(
      { state: rows[0]?.state, slot: rows[0]?.slot, attempt: rows[0]?.attempt },
      { state: 'registered', slot: mark, attempt: 0 },
    )
  })

  it('a known task with the same schedule is current, and its mark stays', async ({ first, second }) => {
    const created = await registered(first)
    await first.scheduled.waitFor(created.mark + 1)
    for (const starting of [true, false]) {
      const answer = await second.scheduled.register('task', { starting })
      assert.ok(answer.outcome === 'current', answer.outcome)
      assert.equal(answer.mark, created.mark)
      assert.equal(answer.generation, 1)
    }
    assert.equal((await second.scheduled.log('task')).length, 1)
  })

  it('a node that looks again without starting makes an unknown task known', async ({ first }) => {
    assert.equal((await first.scheduled.register('task', { starting: false })).outcome, 'created')
  })

  it('registering shows the run under way', async ({ first, second }) => {
    await first.scheduled.register('task')
    const run = await first.scheduled.run('task', { holder: '{"instance":"runner"}' })
    const answer = await second.scheduled.register('task')
    assert.ok(answer.outcome === 'current' && answer.running !== null)
    const { remainingMs, ...running } = answer.running
    assert.deepEqual(running, {
      slot: run.slot,
      attempt: 1,
      fence: run.fence,
      holder: '{"instance":"runner"}',
    })
    assert.ok(remainingMs > longMs - 10_000 && remainingMs <= longMs)
  })

  it('a new schedule that starts raises the generation', async ({ first, second }) => {
    const created = await registered(first)
    await first.scheduled.waitFor(created.mark + 5)
    const answer = await second.scheduled.register('task', { fingerprint: 'new', definition: '{"new":true}' })
    assert.ok(answer.outcome === 'raised', answer.outcome)
    assert.equal(answer.generation, 2)
    const record = await first.scheduled.inspect('task')
    assert.equal(record.fingerprint, 'new')
    assert.equal(record.definition, '{"new":true}')
    assert.equal(record.generation, 2)
    assert.equal(record.registeredAt, (await second.scheduled.inspect('task')).registeredAt)
  })

  it('a new schedule never fires the past: what was due is closed as missed, for it was edited', async (stage) => {
    const { first, second } = stage
    const created = await registered(first)
    await first.scheduled.waitFor(created.mark + 5)
    const answer = await second.scheduled.register('task', { fingerprint: 'new' })
    assert.ok(answer.outcome === 'raised')
    assert.ok(
      answer.mark >= created.mark + 5 && answer.mark <= answer.now,
      `mark ${answer.mark}, now ${answer.now}`,
    )
    const row = await first.scheduled.row('task', answer.mark, 0)
    assert.deepEqual(
      { state: row.state, reason: row.reason, after: row.after },
      { state: 'missed', reason: 'edited', after: created.mark },
    )
    const claim = { slot: created.mark + 2, after: created.mark, fingerprint: 'new' }
    assert.equal((await second.scheduled.claim('task', claim)).outcome, 'decided')
  })

  it('a new schedule raises the control version', async ({ first, second }) => {
    await registered(first)
    const { version } = await first.scheduled.poll()
    await second.scheduled.register('task', { fingerprint: 'new' })
    assert.equal((await first.scheduled.poll()).version, version + 1)
  })

  it('to create, to find current and to supersede do not raise the control version', async ({ first }) => {
    await registered(first)
    await first.scheduled.register('task')
    await first.scheduled.register('task', { fingerprint: 'other', starting: false })
    assert.equal((await first.scheduled.poll()).version, 0)
  })

  it('a new schedule lets the run under way go on', async ({ first, second }) => {
    await registered(first)
    const run = await first.scheduled.run('task')
    const answer = await second.scheduled.register('task', { fingerprint: 'new' })
    assert.equal(answer.outcome === 'raised' && answer.running?.fence, run.fence)
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal((await first.scheduled.row('task', run.slot, 1)).state, 'succeeded')
  })

  it('a new schedule stays paused if the task was', async ({ first, second }) => {
    await registered(first)
    await first.scheduled.control('task', 'pause')
    const answer = await second.scheduled.register('task', { fingerprint: 'new' })
    assert.ok(answer.outcome === 'raised' && answer.paused)
  })

  it('another schedule that does not start is superseded while the present one is attended', async (stage) => {
    const { first, second } = stage
    const created = await registered(first)
    const answer = await second.scheduled.register('task', { fingerprint: 'other', starting: false })
    assert.ok(answer.outcome === 'superseded', answer.outcome)
    assert.equal(answer.mark, created.mark)
    assert.equal((await first.scheduled.inspect('task')).fingerprint, plainFingerprint)
  })

  it('an old schedule that starts again is superseded: a crash-looping old pod changes nothing', async (stage) => {
    const { first, second } = stage
    await registered(first)
    await second.scheduled.register('task', { fingerprint: 'new' })
    const { mark } = await first.scheduled.inspect('task')
    await first.scheduled.waitFor(mark + 1)
    const answer = await first.scheduled.register('task', { starting: true })
    assert.ok(answer.outcome === 'superseded', answer.outcome)
    const record = await second.scheduled.inspect('task')
    assert.deepEqual([record.fingerprint, record.generation, record.mark], ['new', 2, mark])
  })

  it('another schedule takes over once nobody attends the present one', async ({
    first,
    second,
    briefMs,
  }) => {
    await registered(first, { attendMs: briefMs })
    await untilUnattended(first)
    const answer = await second.scheduled.register('task', { fingerprint: 'other', starting: false })
    assert.ok(answer.outcome === 'raised', answer.outcome)
    assert.equal(answer.generation, 2)
  })

  it('a roll-back takes effect once nobody attends the newer schedule', async ({
    first,
    second,
    briefMs,
  }) => {
    await registered(first, { attendMs: briefMs })
    await second.scheduled.register('task', { fingerprint: 'new', attendMs: briefMs })
    assert.equal((await first.scheduled.inspect('task')).generation, 2)
    await untilUnattended(first)
    const answer = await first.scheduled.register('task', { starting: true })
    assert.ok(answer.outcome === 'raised', answer.outcome)
    assert.equal(answer.generation, 3)
    assert.equal((await first.scheduled.inspect('task')).fingerprint, plainFingerprint)
    assert.equal((await second.scheduled.register('task', { fingerprint: 'new' })).outcome, 'superseded')
  })

  it('the last eight schedules are remembered as old', async ({ first }) => {
    await first.scheduled.register('task', { fingerprint: 'f0' })
    for (let index = 1; index <= 8; index++) {
      assert.equal((await first.scheduled.register('task', { fingerprint: `f${index}` })).outcome, 'raised')
    }
    for (let index = 0; index < 8; index++) {
      assert.equal(
        (await first.scheduled.register('task', { fingerprint: `f${index}` })).outcome,
        'superseded',
        `f${index}`,
      )
    }
    assert.equal((await first.scheduled.register('task', { fingerprint: 'f9' })).outcome, 'raised')
    assert.equal((await first.scheduled.register('task', { fingerprint: 'f1' })).outcome, 'superseded')
  })

  it('fingerprints are compared letter by letter', async ({ first }) => {
    const fingerprint = 'aB3-_='.repeat(10).slice(0, 60)
    await registered(first, { fingerprint })
    for (const other of [
      fingerprint.toLowerCase(),
      `${fingerprint} `,
      fingerprint.slice(0, -1),
      fingerprint.replaceAll('_', '%'),
    ]) {
      const answer = await first.scheduled.register('task', { fingerprint: other, starting: false })
      assert.equal(answer.outcome, 'superseded', other)
    }
    assert.equal((await first.scheduled.register('task', { fingerprint })).outcome, 'current')
  })

  it('a definition arrives as it was sent', async ({ first, second }) => {
    const definition = JSON.stringify({ note: "\"\\\u0000 'it' %s $1 😀", text: 'ü'.repeat(1_900) })
    assert.ok(Buffer.byteLength(definition) <= 4_000)
    await registered(first, { definition })
    assert.equal((await second.scheduled.inspect('task')).definition, definition)
  })

  it('whoever registers attends', async ({ first, second }) => {
    await registered(first, { attendMs: longMs })
    const record = await second.scheduled.inspect('task')
    const ahead = record.attendedUntil - record.now
    assert.ok(ahead > longMs - 10_000 && ahead <= longMs + 5, `attended for another ${ahead} ms`)
  })

  it('a shorter attendance does not end a longer one', async ({ first, second, briefMs }) => {
    await registered(first, { attendMs: longMs })
    const { attendedUntil } = await first.scheduled.inspect('task')
    await second.scheduled.register('task', { attendMs: briefMs })
    assert.equal((await first.scheduled.inspect('task')).attendedUntil, attendedUntil)
  })

  it('an attendance that is half over is renewed', async ({ first, second, briefMs }) => {
    await registered(first, { attendMs: briefMs })
    await second.scheduled.register('task', { attendMs: longMs, starting: false })
    const record = await first.scheduled.inspect('task')
    assert.ok(record.attendedUntil - record.now > longMs - 10_000)
  })

  it('a new schedule’s attendance counts', async ({ first, second, briefMs }) => {
    await registered(first, { attendMs: briefMs })
    await second.scheduled.register('task', { fingerprint: 'new', attendMs: longMs })
    const record = await first.scheduled.inspect('task')
    assert.ok(record.attendedUntil - record.now > longMs - 10_000)
  })

  it('a superseded node does not attend', async ({ first, second }) => {
    await registered(first, { attendMs: longMs })
    const { attendedUntil } = await first.scheduled.inspect('task')
    await second.scheduled.register('task', { fingerprint: 'other', starting: false, attendMs: 5 * longMs })
    assert.equal((await first.scheduled.inspect('task')).attendedUntil, attendedUntil)
  })

  it('registrations are answered item by item, in order', async ({ first, second }) => {
    await first.scheduled.register('m-known')
    await first.scheduled.register('a-edited')
    await first.scheduled.register('z-attended')
    const answers = await second.scheduled.registerAll([
      registrationOf('z-attended', { fingerprint: 'other', starting: false }),
      registrationOf('new-2'),
      registrationOf('m-known'),
      registrationOf('a-edited', { fingerprint: 'new' }),
      registrationOf('new-1'),
    ])
    assert.deepEqual(
      answers.map(({ outcome }) => outcome),
      ['superseded', 'created', 'current', 'raised', 'created'],
    )
    assert.equal((await first.scheduled.poll()).version, 1)
  })

  it('several schedules edited in one batch each raise the control version', async ({ first, second }) => {
    for (const task of ['a', 'b', 'c']) await first.scheduled.register(task)
    await second.scheduled.registerAll(
      ['c', 'a', 'b'].map((task) => registrationOf(task, { fingerprint: 'new' })),
    )
    assert.equal((await first.scheduled.poll()).version, 3)
  })

  it('as many tasks as the driver takes are registered at once', async ({ first, second, abilities }) => {
    const tasks = someKeys(abilities.maxBatch, 'task')
    const answers = await first.scheduled.registerAll(tasks.map((task) => registrationOf(task)))
    assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['created']))
    const records = await second.scheduled.inspectAll(tasks)
    assert.deepEqual(
      records.map((record) => record?.task),
      tasks,
    )
  })
})

interface Registrar {
  readonly scheduled: import('./task-actor.ts').TaskActor
}

async function registered(
  node: Registrar,
  wish: Parameters<Registrar['scheduled']['register']>[1] = {},
): Promise<{ readonly mark: number }> {
  const answer = await node.scheduled.register('task', wish)
  assert.ok(answer.outcome === 'created', answer.outcome)
  return answer
}

async function untilUnattended(node: Registrar): Promise<void> {
  await until(
    'nobody attends the task',
    () => node.scheduled.inspect('task'),
    ({ attendedUntil, now }) => attendedUntil < now,
  )
}
