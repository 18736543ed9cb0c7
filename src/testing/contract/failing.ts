import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { DriverFault } from '../../core/errors.ts'
import { wishFor } from './actor.ts'
import { patient, skipping } from './persistence.ts'
import { claimOf, completionOf, registrationOf, type Run } from './task-actor.ts'
import { group, longMs } from './stage.ts'
import { newToken } from './tokens.ts'
import { until } from './until.ts'

/** "Could not find out" is never an answer. */
export const failing: readonly ContractBehaviour[] = group('failing', (it) => {
  const verbs = ['acquire', 'refresh', 'release', 'revoke', 'peek', 'scan', 'purge'] as const
  for (const verb of verbs) {
    it(
      `${verb} rejects with a DriverFault when the store cannot be reached (N19)`,
      ['unreachable'],
      async (stage) => {
        const session = stage.unreachable.open(stage.namespace)
        const { locks } = session
        const token = newToken()
        const calls = {
          acquire: () => locks.acquire([wishFor('key')], skipping),
          refresh: () => locks.refresh([{ key: 'key', token, ttlMs: longMs }], skipping),
          release: () => locks.release([{ key: 'key', token }], skipping),
          revoke: () => locks.revoke({ key: 'key', fence: 1, immediate: false }, skipping),
          peek: () => locks.peek(['key'], skipping),
          scan: () => locks.scan({ prefix: '', limit: 10, cursor: null }, skipping),
          purge: () => locks.purge({ retentionMs: 0, limit: 10 }, skipping),
        }
        await rejectsWithFault(calls[verb]())
        await session.close()
      },
    )
  }

  const taskVerbs = [
    'register',
    'claim',
    'refresh',
    'complete',
    'control',
    'poll',
    'inspect',
    'log',
    'purge',
  ] as const
  for (const verb of taskVerbs) {
    it(
      `${verb} of tasks rejects with a DriverFault when the store cannot be reached`,
      ['unreachable'],
      async (stage) => {
        const session = stage.unreachable.open(stage.namespace)
        const { tasks } = session
        const run = { task: 'task', slot: 1, attempt: 1, fence: 1 }
        const order = { task: 'task', kind: 'pause', requestId: 'id', by: 'contract', fence: null } as const
        const calls = {
          register: () => tasks.register([registrationOf('task')], skipping),
          claim: () => tasks.claim([claimOf('task', { slot: 2, after: 1 })], skipping),
          refresh: () => tasks.refresh([{ task: 'task', token: newToken(), ttlMs: longMs }], skipping),
          complete: () => tasks.complete([completionOf(run)], skipping),
          control: () => tasks.control(order, skipping),
          poll: () => tasks.poll(skipping),
          inspect: () => tasks.inspect(null, skipping),
          log: () => tasks.log({ task: 'task', from: null, to: null, limit: 10 }, skipping),
          purge: () => tasks.purge({ retentionMs: 0, limit: 10 }, skipping),
        }
        await rejectsWithFault(calls[verb]())
        await session.close()
      },
    )
  }

  it('listening rejects when the store cannot be reached', ['unreachable', 'push'], async (stage) => {
    const session = stage.unreachable.open(stage.namespace)
    const deaf: unknown[] = []
    const opening = session.listen?.({ onNotice: () => {}, onDeaf: (error) => deaf.push(error) })
    await assert.rejects(async () => opening)
    await session.close()
  })

  it('a session whose store cannot be reached closes all the same', ['unreachable'], async (stage) => {
    const session = stage.unreachable.open(stage.namespace)
    await session.close()
    await session.close()
  })

  it(
    'a record that another statement has locked is busy, and no other item waits for it',
    ['raw lockKey'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      const held = await first.grant('m-held')
      const other = await first.grant('a-held')
      const unlock = await raw.lockKey(namespace, 'm-held')
      try {
        const refreshed = await first.locks.refresh(
          [held, other].map(({ key, token }) => ({ key, token, ttlMs: longMs })),
          skipping,
        )
        assert.deepEqual(
          refreshed.map(({ outcome }) => outcome),
          ['busy', 'held'],
        )
        const again = await first.locks.acquire(
          [wishFor('m-held', { token: held.token }), wishFor('z-free'), wishFor('a-held')],
          skipping,
        )
        assert.deepEqual(
          again.map(({ outcome }) => outcome),
          ['busy', 'granted', 'held'],
        )
      } finally {
        await unlock()
      }
      assert.equal((await first.refresh(held)).outcome, 'held')
      assert.equal((await second.acquire('m-held')).outcome, 'held')
    },
  )

  it(
    'a lapsed record that another statement has locked is busy: not free, not held',
    ['raw lockKey'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      const lease = await first.grant('key', { ttlMs: stage.briefMs })
      await until(
        'the key is free',
        () => first.peek('key'),
        (record) => record === null,
      )
      const unlock = await raw.lockKey(namespace, 'key')
      try {
        const [answer] = await second.locks.acquire([wishFor('key')], skipping)
        assert.equal(answer?.outcome, 'busy')
      } finally {
        await unlock()
      }
      assert.ok((await second.grant('key')).fence > lease.fence)
    },
  )

  it('a call that may wait for locked records waits, and answers then', ['raw lockKey'], async (stage) => {
    const { first, second, raw, namespace } = stage
    const lease = await first.grant('key')
    const unlock = await raw.lockKey(namespace, 'key')
    let answered = false
    const refresh = first.locks.refresh([{ key: 'key', token: lease.token, ttlMs: longMs }], patient)
    const noted = refresh.finally(() => (answered = true))
    try {
      // Another round trip that is not held up shows that the refresh had time to be answered.
      await second.peek('key')
      await second.grant('other')
      assert.equal(answered, false)
    } finally {
      await unlock()
    }
    assert.deepEqual(
      (await noted).map(({ outcome }) => outcome),
      ['held'],
    )
  })

  it(
    'a task that another statement has locked is busy, and no other item waits for it',
    ['raw lockTask'],
    async (stage) => {
      const { first, second, raw, namespace } = stage
      for (const task of ['a', 'locked', 'z']) await first.scheduled.register(task)
      const [, slot] = await first.scheduled.slots('z', 1)
      const runs = new Map<string, Run>()
      for (const task of ['a', 'locked']) runs.set(task, await first.scheduled.run(task))
      const run = (task: string): Run => runs.get(task) as Run
      const { mark } = await first.scheduled.inspect('z')
      const { tasks } = second
      const unlock = await raw.lockTask(namespace, 'locked')
      try {
        const wishes = ['a', 'locked'].map((task) => ({ task, token: run(task).token, ttlMs: longMs }))
        const refreshed = await tasks.refresh(wishes, skipping)
        assert.deepEqual(
          refreshed.map(({ outcome }) => outcome),
          ['held', 'busy'],
        )
        const again = claimOf('locked', { slot: run('locked').slot, after: 1, token: run('locked').token })
        const claimed = await tasks.claim([again, claimOf('z', { slot, after: mark })], skipping)
        assert.deepEqual(
          claimed.map(({ outcome }) => outcome),
          ['busy', 'granted'],
        )
        const completed = await tasks.complete(
          ['locked', 'a'].map((task) => completionOf(run(task))),
          skipping,
        )
        assert.deepEqual(
          completed.map(({ outcome }) => outcome),
          ['busy', 'completed'],
        )
      } finally {
        await unlock()
      }
      assert.equal((await second.scheduled.refresh(run('locked'))).outcome, 'held')
      assert.equal(await second.scheduled.complete(run('locked')), 'completed')
    },
  )
})

async function rejectsWithFault(call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof DriverFault, `a DriverFault and not ${String(error)}`)
    assert.notEqual(error.kind, 'bad-item')
    assert.ok(error.message.length > 0)
    return true
  })
}
