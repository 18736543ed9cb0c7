// What an outage is to SQLite: a file that another process keeps locked, or that is gone (N3, N18, N19, M7, M13, M30).
import { renameSync } from 'node:fs'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { recordLosses, witnessDeadline } from './deadline-witness.ts'
import { addressOf, openService } from './subjects.ts'

const requestTimeout = 200
const unavailable = { code: 'STORE_UNAVAILABLE' }

/** Another program that uses the file, and may keep all others out. */
function openByAnother(path: string) {
  const database = new Database(path)
  onTestFinished(() => void database.close())
  return {
    lock: () => database.exec('begin exclusive'),
    unlock: () => database.exec('commit'),
  }
}

test('a file that stays locked ends its leases by their deadline, and is used again when it is free (N3, N18, N19)', async () => {
  const losses = recordLosses()
  const address = await addressOf('sqlite')
  const locks = await openService(address, { requestTimeout, ttl: 500 })
  const lease = (await locks.acquire('held'))!
  const waiting = locks.acquire('held', { wait: Infinity, ttl: 30_000 })
  waiting.catch(() => {})
  const atDeadline = witnessDeadline(lease)
  const another = openByAnother(address.url)
  another.lock()

  await expect(locks.acquire('k')).rejects.toMatchObject(unavailable)
  await expect(locks.acquire('held', { wait: 100 })).rejects.toMatchObject(unavailable)
  // In a write-ahead log readers see what was committed last, which is true until then.
  expect(await locks.peek('held')).toMatchObject({ fence: lease.fence })
  expect(await atDeadline).toEqual(['expired'])
  expect(await lease.release()).toBe('unknown')
  expect(await locks.peek('held')).toBe(null)

  another.unlock()
  expect((await waiting)!.fence).toBeGreaterThan(lease.fence)
  expect(await locks.acquire('held')).toBe(null)
  expect(losses).toEqual([{ key: 'held', reason: 'expired' }])
})

test('a file that is locked for a moment costs no lease (N17, M13)', async () => {
  const losses = recordLosses()
  const address = await addressOf('sqlite')
  const locks = await openService(address, { requestTimeout, ttl: 1_000, heartbeat: 50 })
  const lease = (await locks.acquire('held'))!
  const another = openByAnother(address.url)
  another.lock()
  // No renewal comes through for three heartbeats and more.
  await expect(locks.acquire('k')).rejects.toMatchObject(unavailable)
  const before = lease.remainingMs
  another.unlock()
  await expect.poll(() => lease.remainingMs).toBeGreaterThan(before)
  expect(losses).toEqual([])
})

test('a lease whose file was replaced is lost at its next renewal, and never made again (M7, M30)', async () => {
  const address = await addressOf('sqlite')
  const locks = await openService(address, { requestTimeout, ttl: 5_000, heartbeat: 50 })
  const lease = (await locks.acquire('held'))!
  renameSync(address.url, `${address.url}.old`)
  await new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
  expect(lease.lossReason).toBe('gone')
  expect(await locks.peek('held')).toBe(null)
  expect((await locks.acquire('held'))!.fence).toBeGreaterThan(lease.fence)
})
