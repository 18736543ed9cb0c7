import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { DriverFault, InvalidOptionError } from '../../../src/core/errors.ts'
import { postgresDriver, postgresSchema } from 'leasehold/postgres'
import { isAvailable } from '../../support/stores.ts'
import { asking, call, freshDatabase } from './database.ts'

const poll = (driver: ReturnType<typeof postgresDriver>) => driver.open('ns').tasks.poll(call)

async function faultOf(promise: Promise<unknown>): Promise<DriverFault> {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(DriverFault)
  return error as DriverFault
}

describe.skipIf(!(await isAvailable('postgres')))('the tables', () => {
  it('are made by the first call, by as many processes at once as like', async () => {
    await using database = await freshDatabase()
    const drivers = await Promise.all(
      Array.from({ length: 12 }, async () => postgresDriver(await database.client(), { schema: 'locks' })),
    )
    const versions = await Promise.all(drivers.map(async (driver) => (await poll(driver)).version))
    expect(versions).toEqual(drivers.map(() => 0))
    const made = await database.sql(`select tablename from pg_tables where schemaname = 'locks' order by 1`)
    expect(made.map(({ tablename }) => tablename)).toEqual([
      'leasehold_leases',
      'leasehold_namespaces',
      'leasehold_runs',
      'leasehold_tasks',
    ])
  })

  it('are looked for once, and not again with every call', async () => {
    await using database = await freshDatabase()
    const pool = database.pool()
    let statements = 0
    const counted = { query: (text: string, values: string[]) => (statements++, pool.query(text, values)) }
    await poll(postgresDriver(counted))
    statements = 0
    const session = postgresDriver(counted).open('ns')
    await Promise.all([
      session.tasks.poll(call),
      session.locks.peek(['a'], call),
      session.locks.peek(['b'], call),
    ])
    expect(statements).toBe(1 + 3)
    await session.tasks.poll(call)
    expect(statements).toBe(1 + 4)
  })

  it('keep apart what has another prefix or schema, and say no name that is none', async () => {
    await using database = await freshDatabase()
    const places = [{}, { tablePrefix: 'Other_' }, { tablePrefix: '' }, { schema: 'own' }]
    for (const place of places) {
      const session = database.driver(place).open('ns')
      expect(await session.locks.acquire([asking('key')], call), JSON.stringify(place)).toMatchObject([
        { outcome: 'granted' },
      ])
    }
    const tables = await database.sql(
      `select tablename from pg_tables where tablename like '%leases' order by 1`,
    )
    expect(tables.map(({ tablename }) => tablename)).toEqual([
      'Other_leases',
      'leasehold_leases',
      'leasehold_leases',
      'leases',
    ])
    const client = await database.client()
    for (const name of ['a"b', 'a-b', 'a;drop table x', '1a', 'a'.repeat(41)]) {
      expect(() => postgresDriver(client, { tablePrefix: name })).toThrow(InvalidOptionError)
      expect(() => postgresDriver(client, { schema: name })).toThrow(InvalidOptionError)
    }
    expect(() => postgresDriver(client, { schema: '' })).toThrow(InvalidOptionError)
  })

  it('are not made where that is not wanted: the error says how to make them, and the text does', async () => {
    await using database = await freshDatabase()
    const driver = database.driver({ createTables: false, schema: 'app' })
    const fault = await faultOf(poll(driver))
    expect(fault.kind).toBe('unusable')
    expect(fault.message).toContain('postgresSchema()')
    expect(await database.sql(`select from pg_namespace where nspname = 'app'`)).toEqual([])
    await database.sql(postgresSchema({ schema: 'app' }))
    expect(await poll(driver)).toMatchObject({ version: 0 })
    expect(await driver.open('ns').locks.acquire([asking('key')], call)).toMatchObject([
      { outcome: 'granted' },
    ])
  })

  it('are the same whether a driver or the text made them', async () => {
    await using database = await freshDatabase()
    await poll(database.driver({ schema: 'one' }))
    await database.sql(postgresSchema({ schema: 'other' }))
    const columns = (schema: string) =>
      database.sql(
        `select table_name, column_name, data_type, collation_name, column_default, is_nullable
           from information_schema.columns where table_schema = $1 order by table_name, ordinal_position`,
        [schema],
      )
    expect(await columns('one')).not.toEqual([])
    expect(await columns('other')).toEqual(await columns('one'))
  })

  it.each(['leasehold_leases', 'leasehold_leases, leasehold_tasks, leasehold_runs, leasehold_namespaces'])(
    'that somebody drops are made again, for a call that was certainly not applied: %s',
    async (dropped) => {
      await using database = await freshDatabase()
      const session = database.driver().open('ns')
      await session.locks.acquire([asking('key')], call)
      await database.sql(`drop table ${dropped}`)
      expect((await faultOf(session.locks.acquire([asking('key')], call))).kind).toBe('retry')
      expect(await session.locks.acquire([asking('key')], call)).toMatchObject([{ outcome: 'granted' }])
    },
  )

  it('that somebody drops are an error where they are not to be made', async () => {
    await using database = await freshDatabase()
    await database.sql(postgresSchema())
    const driver = database.driver({ createTables: false })
    await poll(driver)
    await database.sql('drop table leasehold_namespaces')
    expect((await faultOf(poll(driver))).kind).toBe('unusable')
  })

  it('that another release made are refused', async () => {
    await using database = await freshDatabase()
    await poll(database.driver())
    await database.sql(`update leasehold_namespaces set version = 7 where namespace = ''`)
    const fault = await faultOf(poll(database.driver()))
    expect(fault).toMatchObject({ kind: 'unusable' })
    expect(fault.message).toContain('version 7')
  })

  it('need no more of a role than to read and write them', async () => {
    await using database = await freshDatabase()
    await poll(database.driver())
    const role = `worker_${database.url.slice(-8)}`
    await database.sql(`create role ${role} login`)
    const asRole = { connectionString: database.url.replace('postgres@', `${role}@`) }
    const refused = await faultOf(poll(database.driver({}, asRole)))
    expect(refused).toMatchObject({ kind: 'unusable' })
    expect(refused.message).toContain('select, insert, update and delete')
    await database.sql(`grant select, insert, update, delete on all tables in schema public to ${role}`)
    const session = database.driver({}, asRole).open('ns')
    const lease = asking('key')
    expect(await session.locks.acquire([lease], call)).toMatchObject([{ outcome: 'granted' }])
    expect(await session.locks.release([lease], call)).toEqual([{ outcome: 'released' }])
    await database.sql(`drop owned by ${role}`)
    await database.sql(`drop role ${role}`)
  })

  it('cannot be used on a standby or in a read-only session, and the error says so', async () => {
    await using database = await freshDatabase()
    await poll(database.driver())
    const session = database.driver({}, { options: '-c default_transaction_read_only=on' }).open('ns')
    const fault = await faultOf(session.locks.acquire([asking('key')], call))
    expect(fault).toMatchObject({ kind: 'unusable' })
    expect(fault.message).toContain('primary')
  })

  it('are looked for again after a first call that failed', async () => {
    await using database = await freshDatabase()
    const unreachable = new URL(database.url)
    unreachable.port = '1'
    const pools = [new pg.Pool({ connectionString: unreachable.href }), database.pool()] as const
    let pool: pg.Pool = pools[0]
    const driver = postgresDriver({ query: (text, values) => pool.query(text, values) })
    expect((await faultOf(poll(driver))).kind).toBe('not-sent')
    pool = pools[1]
    expect(await poll(driver)).toMatchObject({ version: 0 })
    await pools[0].end()
  })
})
