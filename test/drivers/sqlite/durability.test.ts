import { expect, test } from 'vitest'
import type { DriverSession } from '../../../src/driver/index.ts'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import type { SqliteDatabase } from '../../../src/drivers/sqlite/index.ts'
import { full, normal, synchronous, watchCommits } from './commits.ts'
import { acquireRequest, call, claimRequest, freshPath, openRaw, registerRequest } from './sqlite-store.ts'

/** Every call that writes, by how it has to commit. */
const writes: readonly (readonly [string, number, (session: DriverSession) => Promise<unknown>])[] = [
  ['acquire', normal, ({ locks }) => locks.acquire([acquireRequest('a')], call)],
  ['refresh', normal, ({ locks }) => locks.refresh([acquireRequest('a')], call)],
  ['release', normal, ({ locks }) => locks.release([acquireRequest('a')], call)],
  ['register', full, ({ tasks }) => tasks.register([registerRequest('t')], call)],
  ['claim', full, ({ tasks }) => tasks.claim([claimRequest('t', 1, 0)], call)],
  ['renewal of a run', normal, ({ tasks }) => tasks.refresh([{ task: 't', token: 'x', ttlMs: 1000 }], call)],
  [
    'completion',
    full,
    ({ tasks }) =>
      tasks.complete(
        [{ task: 't', slot: 1, attempt: 1, fence: 1, outcome: 'succeeded', reason: null, error: null }],
        call,
      ),
  ],
  [
    'control',
    full,
    ({ tasks }) => tasks.control({ task: 't', kind: 'pause', requestId: 'r', by: 'me', fence: null }, call),
  ],
]

test('in WAL mode slots and outcomes commit with FULL and leases with NORMAL', async () => {
  const database = openRaw(freshPath())
  database.exec('pragma journal_mode = wal')
  const { watched, levels } = watchCommits(database)
  const session = sqliteDriver({ database: watched }).open('test')
  await session.tasks.poll(call)
  levels()
  for (const [name, level, write] of writes) {
    await write(session)
    expect([name, ...levels()]).toEqual([name, level])
  }
})

test('without WAL a lease never commits less surely than the owner of the connection wants', async () => {
  const database = openRaw(freshPath())
  database.exec('pragma journal_mode = delete; pragma synchronous = full')
  const { watched, levels } = watchCommits(database)
  const session = sqliteDriver({ database: watched }).open('test')
  await session.locks.acquire([acquireRequest('a')], call)
  expect(new Set(levels())).toEqual(new Set([full]))
})

test.for(['off', 'normal', 'full', 'extra'])(
  'the owner’s level of %s is back after each call, and a failed one',
  async (level) => {
    const path = freshPath()
    const database = openRaw(path)
    database.exec(`pragma journal_mode = wal; pragma synchronous = ${level}`)
    const before = synchronous(database)
    const { watched, levels } = watchCommits(database)
    const session = sqliteDriver({ database: watched }).open('test')
    for (const [, wanted, write] of writes) {
      await write(session)
      expect(synchronous(database)).toBe(before)
      expect(levels().at(-1)).toBe(wanted === normal ? normal : Math.max(full, before))
    }
    openRaw(path).exec('begin immediate')
    await expect(session.tasks.register([registerRequest('t')], call)).rejects.toMatchObject({
      kind: 'retry',
    })
    expect(synchronous(database)).toBe(before)
  },
)

test('a file that the driver opened itself commits likewise', async () => {
  const path = freshPath()
  const prototype = Object.getPrototypeOf(openRaw(path)) as SqliteDatabase
  const seen: number[] = []
  const original = prototype.exec
  prototype.exec = function (this: SqliteDatabase, sql: string) {
    if (/^commit/i.test(sql)) seen.push(synchronous(this))
    return original.call(this, sql)
  }
  try {
    const session = sqliteDriver({ path }).open('test')
    await session.tasks.poll(call)
    for (const [name, level, write] of writes) {
      seen.length = 0
      await write(session)
      expect([name, ...seen]).toEqual([name, level])
    }
    await session.close()
  } finally {
    prototype.exec = original
  }
  expect(openRaw(path).prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
})
