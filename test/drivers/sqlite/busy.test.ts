import { expect, test } from 'vitest'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import {
  acquireRequest,
  call,
  claimRequest,
  faultOf,
  freshPath,
  grant,
  openRaw,
  openSession,
} from './sqlite-store.ts'

test('a file that another process writes to is a retry, and never blocks the event loop', async () => {
  const path = freshPath()
  const session = openSession(path)
  await grant(session, acquireRequest('a'))
  const other = openRaw(path)
  other.exec('begin immediate')

  const calls = [
    () => session.locks.acquire([acquireRequest('b')], call),
    () => session.locks.refresh([acquireRequest('a')], call),
    () => session.locks.release([acquireRequest('a')], call),
    () => session.locks.revoke({ key: 'a', fence: 1, immediate: true }, call),
    () => session.tasks.claim([claimRequest('task', 1, 0)], call),
  ]
  for (const start of calls) {
    const before = performance.now()
    const answering = start()
    const blockedMs = performance.now() - before
    const fault = await faultOf(answering)
    expect(fault.kind).toBe('retry')
    expect(blockedMs).toBeLessThan(100)
  }

  other.exec('rollback')
  expect(await session.locks.refresh([acquireRequest('a')], call)).toMatchObject([{ outcome: 'held' }])
  expect(await session.locks.peek(['b'], call)).toEqual([null])
})

test('reading goes on while another process writes', async () => {
  const path = freshPath()
  const session = openSession(path)
  const fence = await grant(session, acquireRequest('a'))
  openRaw(path).exec('begin immediate')
  expect(await session.locks.peek(['a'], call)).toMatchObject([{ key: 'a', fence }])
  expect(await session.tasks.poll(call)).toMatchObject({ version: 0 })
})

test('a borrowed connection does not block either, and keeps its own patience', async () => {
  const path = freshPath()
  const borrowed = openRaw(path)
  borrowed.exec('pragma journal_mode = wal')
  borrowed.exec('pragma busy_timeout = 4000')
  const session = sqliteDriver({ database: borrowed }).open('test')
  await grant(session, acquireRequest('a'))
  openRaw(path).exec('begin immediate')

  const before = performance.now()
  const answering = session.locks.refresh([acquireRequest('a')], call)
  const blockedMs = performance.now() - before
  expect((await faultOf(answering)).kind).toBe('retry')
  expect(blockedMs).toBeLessThan(1000)
  expect(borrowed.prepare('pragma busy_timeout').get()).toEqual({ timeout: 4000 })
})

test('opening a file goes on while another process writes', async () => {
  const path = freshPath()
  const fence = await grant(openSession(path), acquireRequest('a'))
  openRaw(path).exec('begin immediate')
  expect(await openSession(path).locks.peek(['a'], call)).toMatchObject([{ fence }])
})

test('creating the tables in a file that is being written to is a retry', async () => {
  const path = freshPath()
  const other = openRaw(path)
  other.exec('pragma journal_mode = wal; create table t (x); begin immediate; insert into t values (1)')
  const session = openSession(path)
  expect((await faultOf(session.locks.peek(['a'], call))).kind).toBe('retry')
  other.exec('commit')
  expect(await session.locks.peek(['a'], call)).toEqual([null])
})
