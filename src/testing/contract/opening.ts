import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import { hostileNames } from './hostile-names.ts'
import { group } from './stage.ts'

export const opening: readonly ContractBehaviour[] = group('opening: sessions', (it) => {
  it('two sessions of one namespace see the same leases', async ({ first, second }) => {
    const lease = await first.grant('shared')
    assert.equal((await second.acquire('shared')).outcome, 'held')
    assert.equal((await second.see('shared')).fence, lease.fence)
  })

  it('two sessions of one driver and namespace see the same leases', async ({ first, enter }) => {
    await first.grant('shared')
    assert.equal((await enter('first').acquire('shared')).outcome, 'held')
  })

  it('two namespaces never see each other’s leases', async ({ first, enter, namespace }) => {
    const stranger = enter('second', `${namespace}-other`)
    const lease = await first.grant('same')
    const other = await stranger.grant('same')
    assert.equal(await first.release(lease), 'released')
    assert.equal((await stranger.see('same')).fence, other.fence)
    assert.equal(await first.peek('same'), null)
    assert.equal((await stranger.refresh(lease)).outcome, 'lost')
  })

  it('two namespaces never see each other’s tasks', async ({ first, enter, namespace }) => {
    const stranger = enter('second', `${namespace}-other`)
    await first.scheduled.register('same')
    const run = await first.scheduled.run('same')
    assert.deepEqual(await stranger.scheduled.inspectAll(['same']), [null])
    assert.equal((await stranger.scheduled.register('same')).outcome, 'created')
    assert.equal((await stranger.scheduled.refresh(run)).outcome, 'lost')
    assert.equal(await stranger.scheduled.complete(run), 'late')
    assert.equal((await first.scheduled.refresh(run)).outcome, 'held')
  })

  it('namespace and key are joined without ambiguity', async ({ first, enter, namespace }) => {
    for (const joint of [':', '/', '.', '|', ' ', '-', '_', '}:{']) {
      const short = enter('first', namespace)
      const long = enter('second', `${namespace}${joint}b`)
      await short.grant(`b${joint}c`)
      await long.grant('c')
    }
    assert.equal((await first.scan('', 100)).length, 8)
  })

  it('namespace and task are joined without ambiguity', async ({ first, enter, namespace }) => {
    for (const joint of [':', '/', '.', '|', ' ', '-', '_', '}:{']) {
      const long = enter('second', `${namespace}${joint}b`)
      assert.equal((await first.scheduled.register(`b${joint}c`)).outcome, 'created')
      assert.equal((await long.scheduled.register('c')).outcome, 'created')
    }
    assert.equal((await first.scheduled.inspectAll(null)).length, 8)
  })

  it('a namespace may be any text of up to 255 bytes', async ({ enter, namespace }) => {
    for (const [index, name] of hostileNames.entries()) {
      const own = `${index}-${namespace.slice(-12)}`
      const hostile = `${cutToBytes(name, 255 - own.length)}${own}`
      const here = enter('first', hostile)
      const there = enter('second', hostile)
      const what = JSON.stringify(name)
      const lease = await here.grant('key')
      assert.equal((await there.acquire('key')).outcome, 'held', what)
      const fences = (await there.scan('', 10)).map((record) => record.fence)
      assert.deepEqual(fences, [lease.fence], what)
      assert.equal((await there.scheduled.register('task')).outcome, 'created', what)
      assert.equal(await here.release(lease), 'released')
    }
  })

  it('namespaces that differ in case or in a trailing space only are two', async ({
    first,
    enter,
    namespace,
  }) => {
    await first.grant('key')
    for (const other of [namespace.toUpperCase(), `${namespace} `, ` ${namespace}`]) {
      await enter('second', other).grant('key')
    }
  })

  it('closing is idempotent and never rejects, used or not', async ({ drivers, namespace }) => {
    const unused = drivers.first.open(namespace)
    await Promise.all([unused.close(), unused.close()])
    const used = drivers.first.open(namespace)
    await used.locks.peek(['key'], { attempt: 1, lockedRows: 'skip' })
    await used.close()
    await used.close()
  })

  it('closing a session leaves its leases and the other sessions of its driver alone', async (stage) => {
    const { drivers, namespace, first, second } = stage
    const leaving = drivers.first.open(namespace)
    const staying = await first.grant('staying')
    await leaving.locks.peek(['staying'], { attempt: 1, lockedRows: 'skip' })
    await leaving.close()
    assert.equal((await first.refresh(staying)).outcome, 'held')
    assert.equal((await second.acquire('staying')).outcome, 'held')
    await stage.enter('first').grant('more')
  })
})

function cutToBytes(text: string, bytes: number): string {
  let cut = ''
  for (const char of text) {
    if (Buffer.byteLength(cut + char) > bytes) break
    cut += char
  }
  return cut
}
