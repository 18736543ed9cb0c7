import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { Grant } from './actor.ts'
import { hostileNames } from './hostile-names.ts'
import { newToken } from './tokens.ts'
import { claimOf, registrationOf, type Run } from './task-actor.ts'
import { group, longMs } from './stage.ts'

export const naming: readonly ContractBehaviour[] = group('names', (it) => {
  it('any stored form is a key: granted, refused, seen, refreshed, released', async ({ first, second }) => {
    for (const key of hostileNames) {
      const what = JSON.stringify(key)
      const lease = await first.grant(key)
      const contended = await second.acquire(key)
      assert.ok(contended.outcome === 'held' && contended.fence === lease.fence, what)
      assert.equal((await second.see(key)).key, key, what)
      assert.equal((await second.refresh(lease)).outcome, 'held', what)
      assert.equal(await second.release(lease), 'released', what)
      assert.equal(await first.peek(key), null, what)
    }
  })

  it('keys of all kinds in one batch are all different keys', async ({ first, second, abilities }) => {
    const keys = hostileNames.slice(0, abilities.maxBatch)
    const requests = keys.map((key) => ({
      key,
      token: newToken(),
      ttlMs: longMs,
      holder: '{}',
      waitingMs: 0,
    }))
    const answers = await first.acquireAll(requests)
    assert.deepEqual(new Set(answers.map(({ outcome }) => outcome)), new Set(['granted']))
    const records = await second.peekAll(keys)
    assert.deepEqual(
      records.map((record) => record?.key),
      keys,
    )
    const again = await second.acquireAll(requests.map((request) => ({ ...request, token: newToken() })))
    assert.deepEqual(
      again.map((answer) => answer.outcome === 'held' && answer.fence),
      answers.map((answer) => answer.outcome === 'granted' && answer.fence),
    )
    const released = await second.releaseAll(requests)
    assert.deepEqual(new Set(released.map(({ outcome }) => outcome)), new Set(['released']))
  })

  it('keys that differ only in case, in space, or in how an accent is written, are different keys', async (stage) => {
    const { first, second } = stage
    const families = [
      ['key', 'Key', 'KEY', 'kEy'],
      ['key2', 'key2 ', ' key2', 'key2\t', 'key2  '],
      ['\u00e9', 'e\u0301', 'e', 'É'],
      ['ß', 'ss', 'ẞ'],
      ['i', 'ı', 'İ', 'I'],
      ['ﬁ', 'fi'],
      ['key\u200b', 'key\u2060', 'key3'],
    ]
    for (const family of families) {
      const leases: Grant[] = []
      for (const key of family) leases.push(await first.grant(key))
      assert.equal(new Set(leases.map(({ fence }) => fence)).size > 0, true)
      await second.release(leases[0] as Grant)
      const left = await second.peekAll(family)
      assert.deepEqual(
        left.map((record) => record?.key ?? null),
        [null, ...family.slice(1)],
      )
    }
  })

  it('any stored form is the name of a task', async ({ first, second }) => {
    await first.scheduled.register(hostileNames[0] as string)
    for (const task of hostileNames) await first.scheduled.register(task)
    const [, slot] = await first.scheduled.slots(hostileNames.at(-1) as string, 1)
    const runs: Run[] = []
    for (const task of hostileNames) {
      const { mark } = await first.scheduled.inspect(task)
      runs.push(await first.scheduled.run(task, { after: mark, slot }))
    }
    for (const run of runs) {
      const what = JSON.stringify(run.task)
      assert.equal((await second.scheduled.refresh(run)).outcome, 'held', what)
      assert.equal(await second.scheduled.complete(run), 'completed', what)
      const rows = await second.scheduled.log(run.task)
      assert.deepEqual(
        rows.map((row) => [row.task, row.state]),
        [
          [run.task, 'succeeded'],
          [run.task, 'registered'],
        ],
        what,
      )
    }
    const known = await second.scheduled.inspectAll(null)
    assert.deepEqual(known.map((record) => record?.task ?? '').toSorted(), hostileNames.toSorted())
  })

  it('tasks of all kinds of names in one batch are all different tasks', async ({
    first,
    second,
    abilities,
  }) => {
    const tasks = hostileNames.slice(0, abilities.maxBatch)
    const registered = await first.scheduled.registerAll(tasks.map((task) => registrationOf(task)))
    assert.deepEqual(new Set(registered.map(({ outcome }) => outcome)), new Set(['created']))
    const records = await second.scheduled.inspectAll(tasks)
    assert.deepEqual(
      records.map((record) => record?.task),
      tasks,
    )
    const marks = records.map((record) => record?.mark as number)
    const slot = Math.max(...marks) + 1
    await first.scheduled.waitFor(slot)
    const claims = await second.scheduled.claimAll(
      tasks.map((task, index) => claimOf(task, { slot, after: marks[index] as number })),
    )
    assert.deepEqual(new Set(claims.map(({ outcome }) => outcome)), new Set(['granted']))
  })

  it('a plain lock of a task’s name is another thing than the task (release, revoke and purge included)', async (stage) => {
    const { first, second } = stage
    await first.scheduled.register('close-books')
    const run = await first.scheduled.run('close-books')
    const lease = await second.grant('close-books')
    await second.release(lease)
    await second.revoke(await second.grant('close-books'), true)
    await second.purgeAll()
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
    assert.equal(await first.scheduled.complete(run), 'completed')
    assert.equal(
      (await second.scheduled.claim('close-books', { slot: run.slot, after: run.slot - 1 })).outcome,
      'decided',
    )
    assert.equal((await first.scheduled.inspect('close-books')).mark, run.mark)
  })
})
