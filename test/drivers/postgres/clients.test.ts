import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { InvalidOptionError } from '../../../src/core/errors.ts'
import type { Driver } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import type { PostgresClient, PostgresDriverOptions } from 'leasehold/postgres'
import { freshNamespace, isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase } from './database.ts'

describe.skipIf(!(await isAvailable('postgres')))('clients', () => {
  let database: Database
  beforeAll(async () => (database = await freshDatabase()))
  afterAll(() => database[Symbol.asyncDispose]())

  const sqlFunction = (options: postgres.Options<Record<string, postgres.PostgresType>> = {}) => {
    const sql = postgres(database.url, { max: 4, onnotice: () => {}, ...options })
    database.also(() => sql.end())
    return sql
  }
  /** Parsers that an application may have set, for everything that is not text. */
  const odd: pg.CustomTypesConfig = {
    getTypeParser: ((oid: number) => (text: string) => (oid === 25 ? text : { odd: text })) as never,
  }

  const clients: [string, () => Promise<PostgresClient> | PostgresClient, PostgresDriverOptions?][] = [
    ['a pg pool', () => database.pool()],
    ['a pg pool with named statements', () => database.pool(), { namedStatements: true }],
    ['a pg pool with type parsers of its own', () => database.pool({ types: odd })],
    ['a pg client', () => database.client()],
    ['a pg client with named statements', () => database.client(), { namedStatements: true }],
    [
      'a client taken from a pg pool',
      async () => {
        const client = await database.pool().connect()
        database.also(async () => client.release())
        return client
      },
    ],
    ['postgres.js', () => sqlFunction()],
    ['postgres.js with named statements', () => sqlFunction(), { namedStatements: true }],
    [
      'postgres.js with other names and types',
      () => sqlFunction({ transform: postgres.pascal, types: { bigint: postgres.BigInt } }),
    ],
    [
      'something that answers rows',
      () => {
        const pool = database.pool()
        return { query: async (text, values) => (await pool.query(text, values)).rows }
      },
    ],
    [
      'something that answers { rows }',
      () => {
        const pool = database.pool()
        return { query: async (text, values) => ({ rows: (await pool.query(text, values)).rows }) }
      },
    ],
  ]

  describe.each(clients)('%s', (_name, create, options) => {
    let driver: Driver
    beforeAll(async () => (driver = postgresDriver(await create(), options)))

    it('leases', async () => {
      const { locks } = driver.open(freshNamespace())
      const lease = asking(`quo"te \\ back, {brace} 'tick' ключ 😀`, { holder: '{"a":"\\u0000 \\" ,{}"}' })
      const [granted] = await locks.acquire([lease], call)
      expect(granted).toMatchObject({ outcome: 'granted', fence: expect.any(Number) })
      const [held] = await locks.acquire([asking(lease.key)], call)
      expect(held).toMatchObject({
        outcome: 'held',
        holder: lease.holder,
        fence: (granted as { fence: number }).fence,
      })
      const [record] = await locks.peek([lease.key], call)
      expect(record).toMatchObject({
        key: lease.key,
        awaited: false,
        revoked: false,
        acquiredAt: expect.any(Number),
      })
      expect(await locks.refresh([lease], call)).toMatchObject([
        { outcome: 'held', remainingMs: expect.any(Number) },
      ])
      expect(await locks.release([lease], call)).toEqual([{ outcome: 'released' }])
    })

    it('takes big batches and many calls at once', async () => {
      const { locks } = driver.open(freshNamespace())
      const batches = Array.from({ length: 8 }, (_batch, batch) =>
        Array.from({ length: 250 }, (_, index) => asking(`${batch}-${index}`)),
      )
      const answers = await Promise.all(batches.map((batch) => locks.acquire(batch, call)))
      expect(answers.flat().filter(({ outcome }) => outcome === 'granted')).toHaveLength(2_000)
      expect(
        new Set((await locks.release(batches.flat().slice(0, 1_000), call)).map(({ outcome }) => outcome)),
      ).toEqual(new Set(['released']))
    })

    it('knows tasks', async () => {
      const { tasks } = driver.open(freshNamespace())
      const schedule = { task: 'task', fingerprint: 'f', definition: '{"cron":"* * * * *"}', attendMs: 1_000 }
      expect(await tasks.register([{ ...schedule, starting: true }], call)).toMatchObject([
        { outcome: 'created', running: null },
      ])
      const by = 'me, "for" \\ reasons'
      expect(
        await tasks.control({ task: 'task', kind: 'pause', requestId: '1', by, fence: null }, call),
      ).toEqual({ outcome: 'applied', version: 1 })
      expect(await tasks.inspect(null, call)).toMatchObject([
        { task: 'task', paused: true, pausedBy: by, definition: schedule.definition },
      ])
    })
  })

  it('that are none are refused at once', () => {
    for (const client of [undefined, null, {}, 'postgres://localhost', () => {}, { query: 'select' }]) {
      expect(() => postgresDriver(client as never)).toThrow(InvalidOptionError)
    }
  })

  it('that are the sql of a transaction are refused at once', async () => {
    await sqlFunction().begin(async (sql) => {
      expect(() => postgresDriver(sql as never)).toThrow(/transaction/)
    })
  })

  it('take no option of the wrong type', () => {
    const pool = database.pool()
    for (const options of [
      { listen: 'yes' },
      { createTables: 1 },
      { namedStatements: null },
      { schema: 1 },
      { tablePrefix: {} },
    ]) {
      expect(() => postgresDriver(pool, options as never), JSON.stringify(options)).toThrow(
        InvalidOptionError,
      )
    }
  })

  it('are given one statement at a time where they are a pg client, which is giving up its queue', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    const { locks } = postgresDriver(await database.client()).open(freshNamespace())
    await Promise.all(Array.from({ length: 20 }, (_, index) => locks.acquire([asking(`key-${index}`)], call)))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', note)
    expect(warnings).toEqual([])
  })

  it('keep their listeners: sessions come and go without leaving one', async () => {
    const pool = database.pool()
    const driver = postgresDriver(pool)
    const sessions = Array.from({ length: 30 }, () => driver.open(freshNamespace()))
    expect(pool.listenerCount('error')).toBe(1)
    for (const session of sessions) await session.close()
    await sessions[0]!.close()
    expect(pool.listenerCount('error')).toBe(0)
  })

  it('are not closed with the session', async () => {
    const pool = database.pool()
    const session = postgresDriver(pool).open(freshNamespace())
    await session.tasks.poll(call)
    await session.close()
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })
})

describe.skipIf(!(await isAvailable('postgres')))('a client whose connections are terminated', () => {
  // Whatever is not caught here fails the test run: nobody but the driver listens to 'error'.
  const terminateAll = (database: Database, name: string) =>
    database.sql('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [name])

  it.each(['pg pool', 'postgres.js'])('goes on working if it can connect anew: %s (M32)', async (kind) => {
    await using database = await freshDatabase()
    const client =
      kind === 'pg pool'
        ? database.pool({ application_name: 'victim' })
        : postgres(database.url, { max: 4, connection: { application_name: 'victim' } })
    if (kind !== 'pg pool') database.also(() => (client as postgres.Sql).end({ timeout: 1 }))
    const session = postgresDriver(client).open('ns')
    const lease = asking('key')
    await session.locks.acquire([lease], call)
    for (let round = 0; round < 5; round++) {
      await Promise.all([1, 2, 3].map(() => session.tasks.poll(call).catch(() => {})))
      await terminateAll(database, 'victim')
      await expect
        .poll(() => session.locks.refresh([lease], call).catch(() => []))
        .toMatchObject([{ outcome: 'held' }])
    }
    await session.close()
  })

  it('ends nothing but its own calls if it is a single one', async () => {
    await using database = await freshDatabase()
    const client = new pg.Client({ connectionString: database.url, application_name: 'victim' })
    await client.connect()
    const session = postgresDriver(client).open('ns')
    await session.tasks.poll(call)
    const ended = new Promise((resolve) => client.once('end', resolve))
    await terminateAll(database, 'victim')
    await ended
    await expect(session.tasks.poll(call)).rejects.toMatchObject({ kind: 'not-sent' })
    await session.close()
  })
})
