import {
  chmodSync,
  closeSync,
  openSync,
  writeSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import { acquireRequest, call, faultOf, freshPath, grant, openRaw, openSession } from './sqlite-store.ts'

test('nothing is opened before the first call, and nothing stays open after the last session', async () => {
  const path = freshPath()
  const driver = sqliteDriver({ path })
  const one = driver.open('one')
  const two = driver.open('two')
  expect(existsSync(path)).toBe(false)
  await grant(one, acquireRequest('a'))
  await grant(two, acquireRequest('a'))
  await one.close()
  await one.close()
  await grant(two, acquireRequest('b'))
  expect(openFiles(path)).not.toEqual([])
  await two.close()
  expect(openFiles(path)).toEqual([])
  // The last connection to leave takes the log with it.
  expect(existsSync(`${path}-wal`)).toBe(false)

  const again = driver.open('one')
  expect(await again.locks.peek(['a'], call)).toMatchObject([{ key: 'a' }])
  await again.close()
  expect(openFiles(path)).toEqual([])
})

test('a closed session answers nothing, and certainly did nothing', async () => {
  const driver = sqliteDriver({ path: freshPath() })
  const closed = driver.open('one')
  await closed.close()
  expect(await faultOf(closed.locks.acquire([acquireRequest('a')], call))).toMatchObject({ kind: 'not-sent' })
  expect(await faultOf(closed.tasks.poll(call))).toMatchObject({ kind: 'not-sent' })
})

test('a missing directory, a directory as path, and a foreign file are unusable, with advice', async () => {
  const path = freshPath()
  const nowhere = openSession(join(dirname(path), 'missing', 'locks.db'))
  expect(await faultOf(nowhere.locks.peek(['a'], call))).toMatchObject({
    kind: 'unusable',
    message: expect.stringContaining('Create the directory'),
  })
  const directory = openSession(dirname(path))
  expect(await faultOf(directory.locks.peek(['a'], call))).toMatchObject({
    kind: 'unusable',
    message: expect.stringContaining('directory'),
  })
  writeFileSync(path, 'no database at all\n'.repeat(500))
  const foreign = openSession(path)
  expect(await faultOf(foreign.locks.peek(['a'], call))).toMatchObject({
    kind: 'unusable',
    message: expect.stringContaining('not an intact SQLite database'),
  })
  expect(openFiles(path)).toEqual([])
})

test('a damaged database is unusable', async () => {
  const path = freshPath()
  const whole = openSession(path)
  await grant(whole, acquireRequest('a'))
  await whole.close()
  const raw = openRaw(path)
  const { rootpage } = raw
    .prepare("select rootpage from sqlite_schema where name = 'leasehold_lease'")
    .get() as { rootpage: number }
  raw.close()
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(4096, 0xff), 0, 4096, (rootpage - 1) * 4096)
  closeSync(file)
  const session = openSession(path)
  expect(await faultOf(session.locks.peek(['a'], call))).toMatchObject({ kind: 'unusable' })
})

test('a directory or a file without write access is unusable, and works once the rights are there', async () => {
  const path = freshPath()
  const directory = dirname(path)
  const readOnly = join(directory, 'read-only')
  mkdirSync(readOnly, { mode: 0o555 })
  chmodSync(directory, 0o777)
  const inside = join(readOnly, 'locks.db')
  writeFileSync(path, '', { mode: 0o444 })
  await asOrdinaryUser(async () => {
    const there = openSession(inside)
    expect(await faultOf(there.locks.peek(['a'], call))).toMatchObject({
      kind: 'unusable',
      message: expect.stringContaining('write access'),
    })
    const file = openSession(path)
    expect(await faultOf(file.locks.acquire([acquireRequest('a')], call))).toMatchObject({
      kind: 'unusable',
      message: expect.stringContaining('write access'),
    })
  })
  chmodSync(path, 0o666)
  if (process.getuid?.() === 0) chownSync(path, ordinaryUser, ordinaryUser)
  await asOrdinaryUser(async () => {
    const file = openSession(path)
    await grant(file, acquireRequest('a'))
    await file.close()
  })
})

test('when the file is deleted or replaced, the driver works on the new one and its leases are lost', async () => {
  const path = freshPath()
  const session = openSession(path)
  const before = await grant(session, acquireRequest('a'))
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  expect(await session.locks.refresh([acquireRequest('a')], call)).toMatchObject([{ outcome: 'lost' }])
  expect(existsSync(path)).toBe(true)
  expect(await grant(session, acquireRequest('a', { token: 'another' }))).toBeGreaterThan(before)

  const replacement = `${path}.restored`
  const other = openSession(replacement)
  const fence = await grant(other, acquireRequest('a', { token: 'restored' }))
  await other.close()
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
  renameSync(replacement, path)
  expect(await session.locks.peek(['a'], call)).toMatchObject([{ fence }])
})

test("':memory:' is a store for one driver, forgotten with its last session", async () => {
  const driver = sqliteDriver({ path: ':memory:' })
  expect(driver.abilities.reach).toBe('process')
  const session = driver.open('test')
  await grant(session, acquireRequest('a'))
  expect(await driver.open('other').locks.peek(['a'], call)).toEqual([null])
  const elsewhere = sqliteDriver({ path: ':memory:' }).open('test')
  expect(await elsewhere.locks.peek(['a'], call)).toEqual([null])
  await elsewhere.close()
})

const ordinaryUser = 65_534

/** Root may write everywhere, so the rights have to be given up to see them. */
async function asOrdinaryUser(body: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return body()
  process.setegid?.(ordinaryUser)
  process.seteuid?.(ordinaryUser)
  try {
    await body()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}

/** The descriptors of this process that belong to the database. */
function openFiles(path: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(path) ? [target] : []
    } catch {
      return []
    }
  })
}

test('what the times of the file say, coarse or wrong, costs no lease (N65)', async () => {
  const path = freshPath()
  const session = openSession(path)
  await grant(session, acquireRequest('a'))
  for (const time of [0, Math.floor(Date.now() / 2_000) * 2, Date.now() / 1_000 + 86_400]) {
    utimesSync(path, time, time)
    expect(await session.locks.refresh([acquireRequest('a')], call)).toMatchObject([{ outcome: 'held' }])
    expect(await session.locks.acquire([acquireRequest('a', { token: 'other' })], call)).toMatchObject([
      { outcome: 'held' },
    ])
  }
})
