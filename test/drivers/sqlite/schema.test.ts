import { expect, test } from 'vitest'
import { InvalidOptionError } from '../../../src/core/errors.ts'
import { sqliteDriver, sqliteSchema } from '../../../src/drivers/sqlite/index.ts'
import {
  acquireRequest,
  call,
  faultOf,
  freshPath,
  grant,
  openRaw,
  openSession,
  registerRequest,
} from './sqlite-store.ts'

test('the tables are created at the first call, and not before', async () => {
  const path = freshPath()
  const session = openSession(path)
  expect(tableNames(path)).toEqual([])
  await session.locks.peek(['a'], call)
  expect(tableNames(path)).toEqual([
    'leasehold_lease',
    'leasehold_meta',
    'leasehold_namespace',
    'leasehold_run',
    'leasehold_task',
  ])
})

test('with createTables off, missing tables are unusable and the message says what to do', async () => {
  const path = freshPath()
  const session = openSession(path, { createTables: false })
  const fault = await faultOf(session.locks.acquire([acquireRequest('a')], call))
  expect(fault).toMatchObject({ kind: 'unusable', message: expect.stringContaining('sqliteSchema()') })
  expect(tableNames(path)).toEqual([])

  openRaw(path).exec(sqliteSchema())
  await grant(session, acquireRequest('a'))
})

test('the schema text can be run again and loses nothing', async () => {
  const path = freshPath()
  const session = openSession(path)
  const fence = await grant(session, acquireRequest('a'))
  openRaw(path).exec(sqliteSchema())
  expect(await session.locks.peek(['a'], call)).toMatchObject([{ fence }])
})

test.for([
  ['2', 'newer release'],
  ['0', 'release notes'],
  ['x', 'release notes'],
] as const)('tables of version %s are refused, with advice', async ([version, advice]) => {
  const path = freshPath()
  const raw = openRaw(path)
  raw.exec(sqliteSchema())
  raw.exec(`update leasehold_meta set value = '${version}' where name = 'schema'`)
  for (const createTables of [true, false]) {
    const session = openSession(path, { createTables })
    const fault = await faultOf(session.tasks.poll(call))
    expect(fault).toMatchObject({ kind: 'unusable', message: expect.stringContaining(advice) })
  }
})

test.for(['lease', 'namespace', 'task', 'run', 'meta'])(
  'when the table %s is dropped while in use it is made again, and the leases in it are lost',
  async (name) => {
    const path = freshPath()
    const session = openSession(path)
    const before = await grant(session, acquireRequest('a'))
    openRaw(path).exec(`drop table leasehold_${name}`)
    const [refreshed] = await session.locks.refresh([acquireRequest('a')], call)
    expect(refreshed).toMatchObject({ outcome: name === 'lease' ? 'lost' : 'held' })
    const after = await grant(
      session,
      acquireRequest('a', { token: name === 'lease' ? 'another' : 'token-of-a' }),
    )
    expect(after).toBeGreaterThanOrEqual(before + (name === 'lease' ? 1 : 0))
    expect(await session.tasks.register([registerRequest('t')], call)).toMatchObject([{ outcome: 'created' }])
  },
)

test('with createTables off, a table dropped while in use is unusable', async () => {
  const path = freshPath()
  const raw = openRaw(path)
  raw.exec(sqliteSchema())
  const session = openSession(path, { createTables: false })
  await grant(session, acquireRequest('a'))
  raw.exec('drop table leasehold_lease')
  expect(await faultOf(session.locks.refresh([acquireRequest('a')], call))).toMatchObject({
    kind: 'unusable',
  })
  raw.exec(sqliteSchema())
  expect(await session.locks.refresh([acquireRequest('a')], call)).toMatchObject([{ outcome: 'lost' }])
})

test('a table that lacks a column is unusable', async () => {
  const path = freshPath()
  const raw = openRaw(path)
  raw.exec('create table leasehold_lease (namespace text, key text, token text, expires_at integer)')
  const session = openSession(path)
  expect(await faultOf(session.locks.acquire([acquireRequest('a')], call))).toMatchObject({
    kind: 'unusable',
  })
})

test('services with different prefixes share a file and see nothing of each other', async () => {
  const path = freshPath()
  const one = openSession(path, { tablePrefix: 'one_' })
  const two = openSession(path, { tablePrefix: 'Two_' })
  await grant(one, acquireRequest('a', { token: 'of-one' }))
  await grant(two, acquireRequest('a', { token: 'of-two' }))
  expect(tableNames(path)).toEqual(expect.arrayContaining(['one_lease', 'Two_lease']))
  openRaw(path).exec(sqliteSchema({ tablePrefix: 'three_' }))
  const three = openSession(path, { tablePrefix: 'three_', createTables: false })
  await grant(three, acquireRequest('a', { token: 'of-three' }))
})

test.for(['1x', 'a-b', 'a"b', 'a b', 'x'.repeat(40), "';drop table t;--"])(
  'the prefix %s is refused before anything is opened',
  (tablePrefix) => {
    expect(() => sqliteDriver({ path: freshPath(), tablePrefix })).toThrow(InvalidOptionError)
    expect(() => sqliteSchema({ tablePrefix })).toThrow(InvalidOptionError)
  },
)

function tableNames(path: string): string[] {
  const rows = openRaw(path)
    .prepare("select name from sqlite_schema where type = 'table' order by name collate nocase")
    .all() as { readonly name: string }[]
  return rows.map((row) => row.name)
}
