// Stores that answer and cannot serve: tables missing, dropped or of another release, rights missing, read-only. A typed
// error that says what to do, at once; never null, never a hang, never a lease that is believed too long (G7).
import Database from 'better-sqlite3'
import { join } from 'node:path'
import { type LeaseholdError, LockService } from 'leasehold'
import { postgresDriver, postgresSchema } from 'leasehold/postgres'
import { sqliteDriver, sqliteSchema } from 'leasehold/sqlite'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { freshPostgresUrl, isAvailable } from '../support/stores.ts'
import { recordLosses, witnessDeadline } from './deadline-witness.ts'
import { temporaryFolder } from './subjects.ts'

/** A new database, what to do to it behind the service's back, and services on it. */
interface Bench {
  /** Runs statements as its owner. */
  run(sql: string): Promise<unknown>
  open(options: { createTables: boolean }): LockService
  readonly schema: string
  readonly leases: string
  /** Makes the tables those of another release. */
  readonly setVersion: (version: number) => string
}

async function postgresBench(): Promise<Bench> {
  const url = await freshPostgresUrl()
  const owner = poolOf(url)
  return {
    run: (sql) => owner.query(sql),
    open: (options) => serviceOn(postgresDriver(poolOf(url), options)),
    schema: postgresSchema(),
    leases: 'leasehold_leases',
    setVersion: (version) => `update leasehold_namespaces set version = ${version} where namespace = ''`,
  }
}

async function sqliteBench(): Promise<Bench> {
  const path = join(temporaryFolder(), 'locks.db')
  const owner = new Database(path)
  onTestFinished(() => void owner.close())
  return {
    run: async (sql) => owner.exec(sql),
    open: (options) => serviceOn(sqliteDriver({ path, ...options })),
    schema: sqliteSchema(),
    leases: 'leasehold_lease',
    setVersion: (version) => `update leasehold_meta set value = '${version}' where name = 'schema'`,
  }
}

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  return pool
}

function serviceOn(driver: NonNullable<ConstructorParameters<typeof LockService>[0]>['driver']): LockService {
  const locks = new LockService({ driver, requestTimeout: 500, ttl: 600 })
  onTestFinished(() => locks.close())
  return locks
}

/** Everything that can be asked rejects with this, and at once, however long the caller would wait. */
async function expectUnusable(locks: LockService, advice: RegExp): Promise<void> {
  const before = performance.now()
  const calls = [
    locks.acquire('k'),
    locks.acquire('k', { wait: Infinity }),
    locks.runExclusively('k', () => expect.unreachable('ran without the lock')),
    locks.peek('k'),
    locks.list(),
  ]
  for (const outcome of await Promise.allSettled(calls)) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNUSABLE' } })
    expect(((outcome as PromiseRejectedResult).reason as LeaseholdError).message).toMatch(advice)
  }
  expect(performance.now() - before).toBeLessThan(2_500)
}

const benches = { sqlite: sqliteBench, postgres: postgresBench } as const

for (const store of ['sqlite', 'postgres'] as const) {
  describe.skipIf(store === 'postgres' && !(await isAvailable('postgres')))(store, () => {
    const openBench = benches[store]

    test('tables that are missing and may not be made: the error says how to make them, and then all works', async () => {
      const { run, open, schema } = await openBench()
      const locks = open({ createTables: false })
      await expectUnusable(locks, new RegExp(`${store}Schema\\(\\)`))
      await run(schema)
      expect(await locks.acquire('k')).not.toBe(null)
    })

    test('tables that are dropped while a lease is held are made again, and the lease is lost', async () => {
      const losses = recordLosses()
      const { run, open, leases } = await openBench()
      const locks = open({ createTables: true })
      const lease = (await locks.acquire('k', { ttl: 10_000, heartbeat: 50 }))!
      const lost = new Promise((resolve) => lease.signal.addEventListener('abort', resolve))
      await run(`drop table ${leases}`)
      await lost
      expect(await lease.release()).toBe('already-lost')
      expect((await locks.acquire('k'))!.fence).toBeGreaterThan(lease.fence)
      expect(losses).toEqual([{ key: 'k', reason: 'gone' }])
    })

    test('tables that are dropped and may not be made again: the lease is lost by its deadline, and calls say why', async () => {
      const { run, open, leases, schema } = await openBench()
      await run(schema)
      const locks = open({ createTables: false })
      const lease = (await locks.acquire('k'))!
      const atDeadline = witnessDeadline(lease)
      await run(`drop table ${leases}`)
      await expectUnusable(locks, new RegExp(`${store}Schema\\(\\)`))
      expect(await atDeadline).toEqual(['expired'])
      expect(['unknown', 'already-lost']).toContain(await lease.release())
    })

    test.each([0, 99])(
      'tables of another release are refused, and not touched (version %d)',
      async (version) => {
        const { run, open, schema, setVersion } = await openBench()
        await run(schema)
        await run(setVersion(version))
        const locks = open({ createTables: true })
        await expectUnusable(locks, new RegExp(`version ${version}`))
        await run(setVersion(1))
        expect(await locks.acquire('k')).not.toBe(null)
      },
    )
  })
}

test('sqlite: a connection that may only read is named as such', async () => {
  const path = join(temporaryFolder(), 'locks.db')
  const owner = new Database(path)
  owner.exec(sqliteSchema())
  const reader = new Database(path, { readonly: true })
  onTestFinished(() => {
    owner.close()
    reader.close()
  })
  const locks = serviceOn(sqliteDriver({ database: reader }))
  const rejected = await locks.acquire('k').catch((error: unknown) => error)
  expect(rejected).toMatchObject({ code: 'STORE_UNUSABLE' })
  expect((rejected as LeaseholdError).message).toMatch(/may not write/)
  // Looking works, and is true.
  expect(await locks.peek('k')).toBe(null)
})

describe.skipIf(!(await isAvailable('postgres')))('postgres that lets this user read only', () => {
  test.each([
    ['a role without rights', 'readonly', /select, insert, update and delete/],
    ['a read-only database', 'postgres', /primary that takes writes/],
  ])('%s', async (what, role, advice) => {
    const url = new URL(await freshPostgresUrl())
    const owner = poolOf(url.href)
    await owner.query(postgresSchema())
    if (role === 'readonly') {
      await owner.query(`do $$ begin create role readonly login; exception when duplicate_object then end $$`)
      await owner.query('grant select on all tables in schema public to readonly')
      url.username = role
    } else {
      await owner.query(`alter database ${url.pathname.slice(1)} set default_transaction_read_only = on`)
    }
    const locks = serviceOn(postgresDriver(poolOf(url.href)))
    const before = performance.now()
    for (const wait of [0, Infinity]) {
      const rejected = await locks.acquire('k', { wait }).catch((error: unknown) => error)
      expect(rejected, what).toMatchObject({ code: 'STORE_UNUSABLE' })
      expect((rejected as LeaseholdError).message).toMatch(advice)
    }
    expect(performance.now() - before).toBeLessThan(2_500)
    expect(await locks.peek('k')).toBe(null)
  })
})
