// The application holds every connection of the pool that it shares with its locks: that is bounded, told in time, and
// leaves nothing behind (N39, and calls that wait in a queue of the client's).
import { LockService } from 'leasehold'
import { postgresDriver } from 'leasehold/postgres'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freshNamespace, freshPostgresUrl, isAvailable } from '../support/stores.ts'
import { recordLosses, witnessDeadline } from './deadline-witness.ts'
import { openService } from './subjects.ts'

const requestTimeout = 400

describe.skipIf(!(await isAvailable('postgres')))('postgres', () => {
  test('a pool without a free connection: leases are lost by their deadline, calls reject, and what comes late holds no key', async () => {
    const losses = recordLosses()
    const url = await freshPostgresUrl()
    const namespace = freshNamespace()
    const direct = await openService({ client: 'pg', url }, { namespace })
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    const locks = new LockService({ driver: postgresDriver(pool), namespace, requestTimeout, ttl: 800 })
    onTestFinished(async () => {
      await locks.close()
      await pool.end()
    })
    const lease = (await locks.acquire('held'))!
    const atDeadline = witnessDeadline(lease)

    const taken = [await pool.connect(), await pool.connect()]
    const before = performance.now()
    await expect(locks.acquire('k', { ttl: '1h' })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(locks.peek('k')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(performance.now() - before).toBeLessThan(2_500)
    expect(await atDeadline).toEqual(['expired'])

    // Now the pool carries out all that was queued, the acquire for an hour among it.
    for (const connection of taken) connection.release()
    expect(await direct.acquire('k', { wait: 5_000 })).not.toBe(null)
    expect(await lease.release()).toBe('already-lost')
    expect((await locks.acquire('held'))!.fence).toBeGreaterThan(lease.fence)
    expect(losses).toEqual([{ key: 'held', reason: 'expired' }])
  })

  test('a pool that is full for a moment costs no lease', async () => {
    const losses = recordLosses()
    const pool = new pg.Pool({ connectionString: await freshPostgresUrl(), max: 1 })
    const locks = new LockService({ driver: postgresDriver(pool), requestTimeout, ttl: 1_000 })
    onTestFinished(async () => {
      await locks.close()
      await pool.end()
    })
    const lease = (await locks.acquire('held', { heartbeat: 30 }))!
    const connection = await pool.connect()
    await expect(locks.peek('held')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    const before = lease.remainingMs
    connection.release()
    await expect.poll(() => lease.remainingMs, { interval: 5 }).toBeGreaterThan(before)
    expect(losses).toEqual([])
    expect(await lease.release()).toBe('released')
  })
})
