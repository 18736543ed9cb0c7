import { randomBytes } from 'node:crypto'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DriverFault } from '../../../src/core/errors.ts'
import type { DriverSession } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { freshNamespace, isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase, waiting } from './database.ts'

async function faultOf(promise: Promise<unknown>): Promise<DriverFault> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(DriverFault)
  return error as DriverFault
}

describe.skipIf(!(await isAvailable('postgres')))('a call that fails', () => {
  let database: Database
  let session: DriverSession
  const namespace = freshNamespace()
  beforeAll(async () => {
    database = await freshDatabase()
    session = database.driver().open(namespace)
    await session.tasks.poll(call)
  })
  afterAll(() => database[Symbol.asyncDispose]())

  /** Holds the row of a key until it is called. */
  const lock = async (key: string) => {
    const client = await database.client()
    await client.query('begin')
    await client.query('select from leasehold_leases where key = $1 for update', [key])
    return () => client.query('rollback')
  }
  /** Resolves once a statement waits for a row; answers the process that does. */
  const waiterFor = async (application: string): Promise<number> => {
    const find = () =>
      database.sql(
        `select pid from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
        [application],
      )
    await expect.poll(find).toHaveLength(1)
    return Number((await find())[0]!['pid'])
  }

  it.each(['pg', 'postgres.js'])('because nobody answers at the address was not sent: %s', async (kind) => {
    const url = 'postgres://postgres@127.0.0.1:1/postgres'
    const pool = new pg.Pool({ connectionString: url })
    const sql = postgres(url)
    expect(
      (
        await faultOf(
          postgresDriver(kind === 'pg' ? pool : sql)
            .open('ns')
            .tasks.poll(call),
        )
      ).kind,
    ).toBe('not-sent')
    await pool.end()
    await sql.end({ timeout: 1 })
  })

  it('because the pool has no connection left was not sent', async () => {
    const pool = database.pool({ max: 1, connectionTimeoutMillis: 50 })
    const taken = await pool.connect()
    expect((await faultOf(postgresDriver(pool).open(namespace).tasks.poll(call))).kind).toBe('not-sent')
    taken.release()
  })

  it('because the pool was ended was not sent', async () => {
    const pool = new pg.Pool({ connectionString: database.url })
    const sql = postgres(database.url)
    await Promise.all([pool.end(), sql.end()])
    for (const client of [pool, sql]) {
      expect((await faultOf(postgresDriver(client).open(namespace).tasks.poll(call))).kind).toBe('not-sent')
    }
  })

  it.each(['pg', 'postgres.js'])(
    'because its connection broke before the answer may have been applied, and was: %s',
    async (kind) => {
      await using proxy = await startFaultProxy(database.url)
      const pool = new pg.Pool({ connectionString: proxy.url })
      const sql = postgres(proxy.url, { max: 1 })
      const { locks, tasks } = postgresDriver(kind === 'pg' ? pool : sql).open(namespace)
      await tasks.poll(call)
      await proxy.set('drop-answers')
      const key = `unanswered-${kind}`
      const answer = faultOf(locks.acquire([asking(key)], call))
      if (kind === 'pg') {
        await expect.poll(() => session.locks.peek([key], call)).not.toEqual([null])
      }
      await proxy.set('pass')
      proxy.resetAll()
      expect((await answer).kind).toBe('unknown')
      await pool.end()
      await sql.end({ timeout: 1 })
    },
  )

  it('because an administrator ended its connection while it waited was certainly not applied', async () => {
    const lease = asking('terminated')
    await session.locks.acquire([lease], call)
    const unlock = await lock('terminated')
    const victim = database.driver({}, { application_name: 'terminated' }).open(namespace)
    const answer = faultOf(victim.locks.release([lease], waiting))
    await database.sql('select pg_terminate_backend($1)', [await waiterFor('terminated')])
    expect((await answer).kind).toBe('retry')
    await unlock()
    expect(await session.locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
  })

  it.each([
    ['statement_timeout', 'not-sent'],
    ['lock_timeout', 'retry'],
  ])('because of the session’s %s was certainly not applied', async (setting, kind) => {
    const lease = asking(setting)
    await session.locks.acquire([lease], call)
    const unlock = await lock(setting)
    const hurried = database.driver({}, { options: `-c ${setting}=100` }).open(namespace)
    expect((await faultOf(hurried.locks.release([lease], waiting))).kind).toBe(kind)
    await unlock()
    expect(await session.locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
  })

  it.each([
    ['has a NUL in it', 'a\u0000b'],
    ['is too long for an index', randomBytes(6_000).toString('base64')],
  ])('because one key %s says that an item is bad, and has granted none', async (_what, bad) => {
    const keys = ['before', bad, 'after'].map((key) => asking(key))
    expect((await faultOf(session.locks.acquire(keys, call))).kind).toBe('bad-item')
    expect(await session.locks.peek(['before', 'after'], call)).toEqual([null, null])
  })

  it('because the client is inside a failed transaction says so', async () => {
    const client = await database.client()
    await client.query('begin')
    await client.query('select 1/0').catch(() => {})
    const fault = await faultOf(postgresDriver(client).open(namespace).tasks.poll(call))
    expect(fault.kind).toBe('unusable')
    expect(fault.message).toContain('transaction')
    await client.query('rollback')
  })

  it.each([
    ['database', (url: URL) => (url.pathname = '/nowhere')],
    ['role', (url: URL) => (url.username = 'nobody_of_that_name')],
  ])('because there is no such %s is not worth another try', async (_what, change) => {
    const url = new URL(database.url)
    change(url)
    const pool = new pg.Pool({ connectionString: url.href })
    expect((await faultOf(postgresDriver(pool).open(namespace).tasks.poll(call))).kind).toBe('unusable')
    await pool.end()
  })

  it('because the client answers in an unknown way says so', async () => {
    const strange = { query: async () => ({ results: [] }) }
    expect((await faultOf(postgresDriver(strange).open(namespace).tasks.poll(call))).message).toContain(
      '{ rows }',
    )
  })

  it('keeps the error of the client as its cause', async () => {
    const fault = await faultOf(session.locks.acquire([asking('a\u0000b')], call))
    expect(fault.cause).toMatchObject({ code: '22021' })
  })

  it('does not stand behind another’s first look for the tables that hangs', async () => {
    await using proxy = await startFaultProxy(database.url)
    await proxy.set('blackhole')
    const hanging = new pg.Pool({ connectionString: proxy.url })
    const good = database.pool()
    let asked = 0
    const client = {
      query: (text: string, values: string[]) => (asked++ === 0 ? hanging : good).query(text, values),
    }
    const { tasks } = postgresDriver(client).open(namespace)
    const first = tasks.poll(call).catch(() => 'failed')
    await new Promise((resolve) => setImmediate(resolve))
    expect(await tasks.poll(call)).toMatchObject({ version: expect.any(Number) })
    proxy.resetAll()
    expect(await first).toBe('failed')
    await hanging.end()
  })
})
