import { expect, test } from 'vitest'
import { InvalidOptionError } from '../../../src/core/errors.ts'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import type { SqliteDatabase, SqliteDriverOptions } from '../../../src/drivers/sqlite/index.ts'
import { acquireRequest, call, faultOf, freshPath, grant, openRaw, openSession } from './sqlite-store.ts'

test('a borrowed database is used as it is, and stays open', async () => {
  const path = freshPath()
  const database = openRaw(path)
  database.exec('create table mine (x); insert into mine values (1)')
  const session = sqliteDriver({ database }).open('test')
  const fence = await grant(session, acquireRequest('a'))
  await session.close()
  expect(database.prepare('select x from mine').get()).toEqual({ x: 1 })
  expect(database.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'delete' })
  expect(await openSession(path).locks.peek(['a'], call)).toMatchObject([{ fence }])
})

test('while its owner is in a transaction, every call is a retry and leaves the transaction alone', async () => {
  const database = openRaw(freshPath())
  const session = sqliteDriver({ database }).open('test')
  await grant(session, acquireRequest('a'))
  database.exec('create table mine (x); begin; insert into mine values (1)')
  for (const calling of [
    session.locks.refresh([acquireRequest('a')], call),
    session.locks.peek(['a'], call),
    session.tasks.control({ task: 't', kind: 'pause', requestId: 'r', by: 'me', fence: null }, call),
  ]) {
    expect(await faultOf(calling)).toMatchObject({ kind: 'retry' })
  }
  database.exec('commit')
  expect(database.prepare('select x from mine').get()).toEqual({ x: 1 })
  expect(await session.locks.refresh([acquireRequest('a')], call)).toMatchObject([{ outcome: 'held' }])
})

test('one that its owner closed is unusable', async () => {
  const database = openRaw(freshPath())
  const session = sqliteDriver({ database }).open('test')
  await grant(session, acquireRequest('a'))
  database.close()
  expect(await faultOf(session.locks.refresh([acquireRequest('a')], call))).toMatchObject({
    kind: 'unusable',
    message: expect.stringContaining('closed'),
  })
  await session.close()
})

test('one that may only read is unusable', async () => {
  const path = freshPath()
  const session = openSession(path)
  await grant(session, acquireRequest('a'))
  const database = openRaw(path)
  database.exec('pragma query_only = on')
  const reader = sqliteDriver({ database }).open('test')
  expect(await faultOf(reader.locks.acquire([acquireRequest('b')], call))).toMatchObject({ kind: 'unusable' })
})

test('one that answers integers as bigint or rows as arrays gives the same answers', async () => {
  const database = openRaw(freshPath()) as SqliteDatabase & { defaultSafeIntegers?: () => void }
  const asBigint: SqliteDatabase = {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare(sql) {
      const statement = database.prepare(sql) as ReturnType<SqliteDatabase['prepare']> & BigintSwitch
      if (statement.safeIntegers !== undefined) statement.safeIntegers(true)
      else statement.setReadBigInts?.(true)
      statement.setReturnArrays?.(true)
      return statement
    },
  }
  const session = sqliteDriver({ database: asBigint }).open('test')
  const fence = await grant(session, acquireRequest('a'))
  expect(fence).toBeTypeOf('number')
  const [record] = await session.locks.peek(['a'], call)
  expect(record).toMatchObject({ key: 'a', fence })
  expect(record?.expiresAt).toBeTypeOf('number')
  await session.locks.release([acquireRequest('a')], call)
  expect(await session.locks.purge({ retentionMs: -1000, limit: 5 }, call)).toBe(1)
})

interface BigintSwitch {
  safeIntegers?(on: boolean): unknown
  setReadBigInts?(on: boolean): void
  setReturnArrays?(on: boolean): void
}

test('a database that answers through callbacks is unusable', async () => {
  const statement = { run: () => statement, get: () => statement, all: () => [statement] }
  const database = { exec: () => database, prepare: () => statement, close: () => undefined }
  const session = sqliteDriver({ database }).open('test')
  expect(await faultOf(session.locks.peek(['a'], call))).toMatchObject({
    kind: 'unusable',
    message: expect.stringContaining('synchronously'),
  })
})

test.for<[string, unknown]>([
  ['nothing', undefined],
  ['neither', {}],
  ['both', { path: 'x', database: { exec() {}, prepare() {}, close() {} } }],
  ['an empty path', { path: '' }],
  ['a path with NUL', { path: 'a\0b' }],
  ['a URL', { path: 'file:locks.db' }],
  ['a number', { path: 7 }],
  ['a promise', { database: Promise.resolve() }],
  ['a null database', { database: null }],
  ['createTables as text', { path: 'x', createTables: 'no' }],
])('%s is an invalid option', ([, options]) => {
  expect(() => sqliteDriver(options as SqliteDriverOptions)).toThrow(InvalidOptionError)
})
