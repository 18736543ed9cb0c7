import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { Notice, NoticeChannel } from '../../driver/index.ts'
import type { Actor, Grant } from './actor.ts'
import { hostileNames } from './hostile-names.ts'
import { group, longMs, someKeys } from './stage.ts'
import { persist, recover } from './recovery.ts'
import { until } from './until.ts'

export const pushing: readonly ContractBehaviour[] = group('push', (it) => {
  it('the release of an awaited key wakes who listens', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const lease = await awaited(first, second, 'key')
    await first.release(lease)
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('a node hears its own releases too', ['push'], async ({ first }) => {
    const ear = await listen(first)
    await first.release(await awaited(first, first, 'key'))
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('everybody who listens hears it', ['push'], async ({ first, second, enter }) => {
    const ears = await Promise.all([first, second, enter('second')].map(listen))
    await first.release(await awaited(first, second, 'key'))
    for (const ear of ears) await ear.hears({ kind: 'released', key: 'key' })
    for (const ear of ears) await ear.close()
  })

  it('a release that nobody waits for says nothing', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    await first.release(await first.grant('unawaited'))
    await first.release(await awaited(first, second, 'awaited'))
    await ear.hears({ kind: 'released', key: 'awaited' })
    assert.deepEqual(ear.released(), ['awaited'])
    await ear.close()
  })

  it(
    'a release after the waiter’s time is over says nothing',
    ['push'],
    async ({ first, second, briefMs }) => {
      const ear = await listen(second)
      const lease = await first.grant('key')
      await second.acquire('key', { waitingMs: briefMs })
      await until(
        'nobody waits',
        () => first.see('key'),
        ({ awaited: waits }) => !waits,
      )
      await first.release(lease)
      await first.release(await awaited(first, second, 'last'))
      await ear.hears({ kind: 'released', key: 'last' })
      assert.deepEqual(ear.released(), ['last'])
      await ear.close()
    },
  )

  it('a stale release wakes nobody', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const old = await first.grant('key')
    await first.release(old)
    const lease = await awaited(first, second, 'key')
    await first.release(old)
    await first.release(await awaited(first, second, 'last'))
    await ear.hears({ kind: 'released', key: 'last' })
    assert.deepEqual(ear.released(), ['last'])
    await first.release(lease)
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('the release of a revoked lease wakes who waits', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const lease = await awaited(first, second, 'key')
    await second.revoke(lease)
    await first.release(lease)
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('an immediate revocation wakes who waits', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const lease = await awaited(first, second, 'key')
    await first.revoke(lease, true)
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('a wait that began before a refresh is not forgotten by it', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const lease = await awaited(first, second, 'key')
    await first.refresh(lease)
    await first.grant('key', { token: lease.token })
    await first.release(lease)
    await ear.hears({ kind: 'released', key: 'key' })
    await ear.close()
  })

  it('every key of a batch of releases is told', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const keys = someKeys(40)
    const leases: Grant[] = []
    for (const key of keys) leases.push(await awaited(first, second, key))
    await first.releaseAll(leases)
    await until(
      'all are heard',
      async () => ear.released().length,
      (count) => count >= keys.length,
    )
    assert.deepEqual(ear.released().toSorted(), keys.toSorted())
    await ear.close()
  })

  it('keys arrive in notices as they are', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    const leases: Grant[] = []
    for (const key of hostileNames) leases.push(await awaited(first, second, key))
    for (const lease of leases) await first.release(lease)
    await until(
      'all are heard',
      async () => ear.released().length,
      (count) => count >= hostileNames.length,
    )
    assert.deepEqual(ear.released().toSorted(), hostileNames.toSorted())
    await ear.close()
  })

  it('other namespaces are not heard', ['push'], async ({ first, second, enter, namespace }) => {
    const ear = await listen(second)
    for (const other of [`${namespace}:`, `${namespace}x`, namespace.slice(0, -1), namespace.toUpperCase()]) {
      const stranger = enter('first', other)
      await stranger.release(await awaited(stranger, stranger, 'theirs'))
    }
    await first.release(await awaited(first, second, 'ours'))
    await ear.hears({ kind: 'released', key: 'ours' })
    assert.deepEqual(ear.released(), ['ours'])
    await ear.close()
  })

  it('any namespace can be listened to', ['push'], async ({ enter, namespace }) => {
    const suffix = namespace.slice(-8)
    for (const name of ['*', '[a-z]', 'a?b', '"quoted"', "it's", '😀', 'x'.repeat(240), 'ключ'.repeat(30)]) {
      const node = enter('first', `${name}${suffix}`)
      const other = enter('second', `${name}${suffix}`)
      const ear = await listen(other)
      await node.release(await awaited(node, other, 'key'))
      await ear.hears({ kind: 'released', key: 'key' })
      await ear.close()
    }
  })

  it('a probe comes back', ['push'], async ({ second }) => {
    const ear = await listen(second)
    await ear.channel.probe()
    await Promise.all([ear.channel.probe(), ear.channel.probe(), ear.channel.probe()])
    assert.deepEqual(ear.notices, [], 'a probe is no notice')
    await ear.close()
  })

  it('a probe of one channel is no notice to another', ['push'], async ({ first, second }) => {
    const ears = await Promise.all([first, second].map(listen))
    for (const ear of ears) await ear.channel.probe()
    for (const ear of ears) assert.deepEqual(ear.notices, [])
    for (const ear of ears) await ear.close()
  })

  it('a closed channel hears nothing, and closing it again is fine', ['push'], async ({ first, second }) => {
    const [closed, open] = [await listen(second), await listen(second)]
    await closed.close()
    await closed.close()
    await first.release(await awaited(first, second, 'key'))
    await open.hears({ kind: 'released', key: 'key' })
    assert.deepEqual(closed.notices, [])
    assert.deepEqual(closed.deaf, [], 'to be closed is not to be deaf')
    await open.close()
  })

  it('a session listens again after it closed its channel', ['push'], async ({ first, second }) => {
    for (let round = 0; round < 3; round++) {
      const ear = await listen(second)
      await first.release(await awaited(first, second, 'key'))
      await ear.hears({ kind: 'released', key: 'key' })
      await ear.close()
    }
  })

  it('closing a session closes its channels', ['push'], async ({ first, second, enter }) => {
    const leaving = enter('second')
    const [left, open] = [await listen(leaving), await listen(second)]
    await leaving.session.close()
    await first.release(await awaited(first, second, 'key'))
    await open.hears({ kind: 'released', key: 'key' })
    assert.deepEqual(left.notices, [])
    await left.close()
    await open.close()
  })

  it(
    'a channel whose connection was cut hears again by itself, or says once that it is deaf',
    ['push', 'raw disturb'],
    async (stage) => {
      const { first, second, raw } = stage
      const ear = await listen(second)
      await raw.disturb()
      let round = 0
      await until(
        'it hears or is deaf',
        async () => {
          await persist(async () => first.release(await awaited(first, second, `key-${++round}`)))
          return { deaf: ear.deaf.length, heard: ear.notices.length }
        },
        ({ deaf, heard }) => deaf > 0 || heard > 0,
      )
      assert.ok(ear.deaf.length <= 1)
      await ear.close()
      await recover([first, second])
      const next = await listen(second)
      await first.release(await awaited(first, second, 'key'))
      await next.hears({ kind: 'released', key: 'key' })
      await next.close()
      assert.ok(ear.deaf.length <= 1)
    },
  )

  it('pause, resume and cancel are told with the control version', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    await first.scheduled.register('task')
    await first.scheduled.run('task')
    for (const kind of ['pause', 'resume', 'cancel'] as const) {
      const answer = await first.scheduled.control('task', kind)
      assert.ok(answer.outcome === 'applied')
      await ear.hears({ kind: 'control', version: answer.version })
    }
    await ear.close()
  })

  it('an edited schedule is told as well', ['push'], async ({ first, second }) => {
    await first.scheduled.register('task')
    const ear = await listen(second)
    assert.equal((await first.scheduled.register('task', { fingerprint: 'new' })).outcome, 'raised')
    await ear.hears({ kind: 'control', version: (await first.scheduled.poll()).version })
    await ear.close()
  })

  it('a request that was not applied is not told', ['push'], async ({ first, second }) => {
    const ear = await listen(second)
    await first.scheduled.control('unknown', 'pause')
    await first.scheduled.register('task')
    await first.scheduled.control('task', 'cancel')
    await first.scheduled.control('task', 'pause', { requestId: 'once' })
    await first.scheduled.control('task', 'pause', { requestId: 'once' })
    await first.release(await awaited(first, second, 'last'))
    await ear.hears({ kind: 'released', key: 'last' })
    assert.equal(ear.notices.filter(({ kind }) => kind === 'control').length, 1)
    await ear.close()
  })
})

interface Ear {
  readonly channel: NoticeChannel
  readonly notices: Notice[]
  readonly deaf: unknown[]
  released(): string[]
  hears(notice: Notice): Promise<void>
  close(): Promise<void>
}

async function listen(node: Actor): Promise<Ear> {
  const notices: Notice[] = []
  const deaf: unknown[] = []
  const channel = await node.session.listen?.({
    onNotice: (notice) => notices.push(notice),
    onDeaf: (error) => deaf.push(error),
  })
  assert.ok(channel !== undefined)
  return {
    channel,
    notices,
    deaf,
    released: () => notices.flatMap((notice) => (notice.kind === 'released' ? [notice.key] : [])),
    hears: async (wanted) => {
      const isWanted = (notice: Notice): boolean => JSON.stringify(notice) === JSON.stringify(wanted)
      await until(
        `${JSON.stringify(wanted)} is heard`,
        async () => notices,
        (heard) => heard.some(isWanted),
      )
    },
    close: () => channel.close(),
  }
}

/** A lease of one node that another says it waits for. */
async function awaited(holder: Actor, waiter: Actor, key: string): Promise<Grant> {
  const lease = await holder.grant(key)
  assert.equal((await waiter.acquire(key, { waitingMs: longMs })).outcome, 'held')
  return lease
}
