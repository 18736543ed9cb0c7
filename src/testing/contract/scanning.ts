import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { LeaseRecord } from '../../driver/index.ts'
import { hostileNames } from './hostile-names.ts'
import { group, someKeys } from './stage.ts'
import { until } from './until.ts'

export const scanning: readonly ContractBehaviour[] = group('locks: scanning', (it) => {
  it('a namespace without leases has an empty scan', async ({ first }) => {
    assert.deepEqual(await first.scan('', 10), [])
  })

  it('every held lease is on exactly one page, whatever the page size', async ({ first, second }) => {
    const keys = someKeys(23)
    for (const key of keys) await first.grant(key)
    for (const limit of [1, 5, 23, 100]) {
      assert.deepEqual(sortedKeys(await second.scan('', limit)), keys.toSorted(), `pages of ${limit}`)
    }
  })

  it('a scan shows the records that peek shows', async ({ first, second }) => {
    const keys = someKeys(5)
    for (const key of keys) await first.grant(key, { holder: `{"of":"${key}"}` })
    const scanned = await second.scan('', 10)
    const peeked = await second.peekAll(scanned.map(({ key }) => key))
    assert.deepEqual(
      scanned.map(({ remainingMs: _, ...rest }) => rest),
      peeked.map((record) => {
        const { remainingMs: _, ...rest } = record as LeaseRecord
        return rest
      }),
    )
  })

  it('released and lapsed leases are not shown', async ({ first, second, briefMs }) => {
    await first.release(await first.grant('released'))
    await first.grant('held')
    await first.grant('lapsed', { ttlMs: briefMs })
    await until(
      'the lease has lapsed',
      () => second.peek('lapsed'),
      (record) => record === null,
    )
    assert.deepEqual(sortedKeys(await second.scan('', 10)), ['held'])
  })

  it('leases of other namespaces are not shown', async ({ first, second, enter, namespace }) => {
    for (const other of [`${namespace}x`, `${namespace}:`, `x${namespace}`, namespace.slice(0, -1)]) {
      await enter('first', other).grant('theirs')
    }
    await first.grant('ours')
    assert.deepEqual(sortedKeys(await second.scan('', 10)), ['ours'])
  })

  it('tasks and their runs are not shown', async ({ first, second }) => {
    await first.scheduled.register('task')
    await first.scheduled.run('task')
    await first.grant('key')
    assert.deepEqual(sortedKeys(await second.scan('', 10)), ['key'])
  })

  it('a prefix selects the keys that begin with it', async ({ first, second }) => {
    for (const key of ['job:1', 'job:2', 'job', 'Job:3', 'jo', 'ajob:4', 'job;5']) await first.grant(key)
    assert.deepEqual(sortedKeys(await second.scan('job:', 2)), ['job:1', 'job:2'])
    assert.deepEqual(sortedKeys(await second.scan('job', 2)), ['job', 'job:1', 'job:2', 'job;5'])
    assert.deepEqual(sortedKeys(await second.scan('jobs', 2)), [])
  })

  it('a prefix stands for itself, whatever the store takes for a wildcard', async ({ first, second }) => {
    const keys = ['%', '_', '*', '?', '[a]', 'a', '\\', '\\\\', '^', '{a}', "'", '"', 'ä', 'A'].flatMap(
      (stem) => [stem, `${stem}-more`],
    )
    for (const key of keys) await first.grant(key)
    for (const stem of keys) {
      const expected = keys.filter((key) => key.startsWith(stem)).toSorted()
      assert.deepEqual(sortedKeys(await second.scan(stem, 50)), expected, JSON.stringify(stem))
    }
  })

  it('a prefix may end in the middle of whatever the store takes for a letter', async ({ first, second }) => {
    for (const key of ['e\u0301tat', 'e', '\u00e9tat', '👩‍👩‍👧', '👩']) await first.grant(key)
    assert.deepEqual(sortedKeys(await second.scan('e', 10)), ['e', 'e\u0301tat'])
    assert.deepEqual(sortedKeys(await second.scan('👩', 10)), ['👩', '👩‍👩‍👧'].toSorted())
  })

  it('a prefix as long as a key can be is fine', async ({ first, second }) => {
    const key = 'k'.repeat(255)
    await first.grant(key)
    assert.deepEqual(sortedKeys(await second.scan(key, 10)), [key])
    assert.deepEqual(sortedKeys(await second.scan('k'.repeat(254), 10)), [key])
  })

  it('keys of every kind come back as they were', async ({ first, second }) => {
    for (const key of hostileNames) await first.grant(key)
    assert.deepEqual(sortedKeys(await second.scan('', 9)), hostileNames.toSorted())
  })

  it('what is held all the while is found while other leases come and go', async ({ first, second }) => {
    const stable = someKeys(20, 'stable')
    for (const key of stable) await first.grant(key)
    let passing = await first.grant('passing-0')
    let count = 0
    const found = await second.scan('', 3, async () => {
      await first.release(passing)
      passing = await first.grant(`passing-${++count}`)
    })
    const seen = new Set(found.map(({ key }) => key))
    assert.deepEqual(
      stable.filter((key) => !seen.has(key)),
      [],
    )
  })

  it('a scan goes on although the lease its page ended with is gone', async ({ first, second }) => {
    const leases = new Map<string, { key: string; token: string }>()
    for (const key of someKeys(9)) leases.set(key, await first.grant(key))
    const found = new Set<string>()
    let cursor: string | null = null
    do {
      const from: string | null = cursor
      const page = await second.locks.scan(
        { prefix: '', limit: 2, cursor: from },
        { attempt: 1, lockedRows: 'skip' },
      )
      for (const { key } of page.records) {
        found.add(key)
        await first.release(leases.get(key) as { key: string; token: string })
      }
      cursor = page.cursor
    } while (cursor !== null)
    assert.deepEqual([...found].toSorted(), [...leases.keys()].toSorted())
  })
})

function sortedKeys(records: readonly LeaseRecord[]): string[] {
  return records.map(({ key }) => key).toSorted()
}
