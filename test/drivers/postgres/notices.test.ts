import pg from 'pg'
import postgres from 'postgres'
import { describe, expect, it } from 'vitest'
import type { Driver, DriverSession, Notice, NoticeChannel } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import type { PgListenClient } from 'leasehold/postgres'
import { isAvailable } from '../../support/stores.ts'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { startPostgres } from '../../support/servers.ts'
import { asking, call, type Database, freshDatabase } from './database.ts'

/** A listener that keeps what it hears. */
class Ear {
  readonly notices: Notice[] = []
  readonly deafness: unknown[] = []
  channel: NoticeChannel | undefined

  async open(session: DriverSession): Promise<NoticeChannel> {
    const channel = await session.listen!({
      onNotice: (notice) => void this.notices.push(notice),
      onDeaf: (error) => void this.deafness.push(error),
    })
    this.channel = channel
    return channel
  }

  get keys(): string[] {
    return this.notices.flatMap((notice) => (notice.kind === 'released' ? [notice.key] : []))
  }
}

async function hearing(session: DriverSession): Promise<Ear & { channel: NoticeChannel }> {
  const ear = new Ear()
  await ear.open(session)
  return ear as Ear & { channel: NoticeChannel }
}

const listeners = (database: Database) =>
  database.sql(`select pid from pg_stat_activity where datname = current_database() and query like 'listen%'`)

const plain = (database: Database) => {
  const pool = database.pool()
  return { query: async (text: string, values: string[]) => (await pool.query(text, values)).rows }
}

const drivers: [string, (database: Database) => Promise<Driver> | Driver][] = [
  ['a pg pool', (database) => database.driver()],
  ['a pg client', async (database) => postgresDriver(await database.client())],
  [
    'postgres.js',
    (database) => {
      const sql = postgres(database.url, { max: 2 })
      database.also(() => sql.end({ timeout: 1 }))
      return postgresDriver(sql)
    },
  ],
  [
    'any client and a pg client to listen on',
    (database) => postgresDriver(plain(database), { listen: () => new pg.Client(database.url) }),
  ],
  [
    'any client and postgres.js to listen on',
    (database) => postgresDriver(plain(database), { listen: (options) => postgres(database.url, options) }),
  ],
]

describe.skipIf(!(await isAvailable('postgres')))('push', () => {
  describe.each(drivers)('with %s', (_name, create) => {
    it('tells of a release that somebody waits for, and only of that', async () => {
      await using database = await freshDatabase()
      const session = (await create(database)).open('ns')
      const ear = await hearing(session)
      const leases = ['awaited', 'not-awaited', 'awaited, "too" \\ 😀'].map((key) => asking(key))
      await session.locks.acquire(leases, call)
      await session.locks.acquire(
        [0, 2].map((index) => asking(leases[index]!.key, { waitingMs: 10_000 })),
        call,
      )
      await session.locks.release(leases, call)
      await ear.channel.probe()
      expect(ear.keys.toSorted()).toEqual(['awaited', 'awaited, "too" \\ 😀'])
      // Nobody has asked to be woken since.
      const again = asking('awaited')
      await session.locks.acquire([again], call)
      await session.locks.release([again], call)
      await ear.channel.probe()
      expect(ear.keys).toHaveLength(2)
      await session.close()
    })

    it('goes deaf once, harmlessly, when its connection is terminated (M32)', async () => {
      await using database = await freshDatabase()
      const session = (await create(database)).open('ns')
      const ear = await hearing(session)
      await database.sql('select pg_terminate_backend($1)', [(await listeners(database))[0]!['pid']])
      await expect.poll(() => ear.deafness).toHaveLength(1)
      await expect(ear.channel.probe()).rejects.toBe(ear.deafness[0])
      await ear.channel.close()
      await ear.channel.close()
      const next = await hearing(session)
      await next.channel.probe()
      expect(ear.deafness).toHaveLength(1)
      await session.close()
    })

    it('ends its connection and nothing else when it is closed', async () => {
      await using database = await freshDatabase()
      const session = (await create(database)).open('ns')
      const ear = await hearing(session)
      expect(await listeners(database)).toHaveLength(1)
      const probing = ear.channel.probe().catch(() => 'ended')
      await ear.channel.close()
      await probing
      await expect.poll(() => listeners(database)).toEqual([])
      await Promise.all([hearing(session), hearing(session)])
      expect(await listeners(database)).toHaveLength(2)
      await session.close()
      await expect.poll(() => listeners(database)).toEqual([])
      expect(await session.tasks.poll(call)).toMatchObject({ version: 0 })
      expect(ear.deafness).toEqual([])
    })
  })

  it('tells of control requests and new schedules with the version they made', async () => {
    await using database = await freshDatabase()
    const session = database.driver().open('ns')
    const ear = await hearing(session)
    const schedule = { task: 'task', definition: '{}', attendMs: 1_000, starting: true }
    await session.tasks.register([{ ...schedule, fingerprint: 'f' }], call)
    await session.tasks.control({ task: 'task', kind: 'pause', requestId: '1', by: 'me', fence: null }, call)
    await session.tasks.register([{ ...schedule, fingerprint: 'g' }], call)
    await ear.channel.probe()
    expect(ear.notices).toEqual([
      { kind: 'control', version: 1 },
      { kind: 'control', version: 2 },
    ])
    await session.close()
  })

  it('reaches its own namespace and tables, and no others', async () => {
    await using database = await freshDatabase()
    const home = database.driver().open('ns')
    const others = [database.driver().open('other'), database.driver({ tablePrefix: 'x_' }).open('ns')]
    const ears = await Promise.all([home, ...others].map(hearing))
    const lease = asking('key')
    await home.locks.acquire([lease], call)
    await home.locks.acquire([asking('key', { waitingMs: 10_000 })], call)
    await home.locks.release([lease], call)
    await Promise.all(ears.map(({ channel }) => channel.probe()))
    expect(ears.map(({ keys }) => keys)).toEqual([['key'], [], []])
    await Promise.all([home, ...others].map((session) => session.close()))
  })

  it('tells of a key that an operator has freed', async () => {
    await using database = await freshDatabase()
    const session = database.driver().open('ns')
    const ear = await hearing(session)
    const [granted] = await session.locks.acquire([asking('key')], call)
    await session.locks.acquire([asking('key', { waitingMs: 10_000 })], call)
    const fence = (granted as { fence: number }).fence
    await session.locks.revoke({ key: 'key', fence, immediate: false }, call)
    await ear.channel.probe()
    expect(ear.keys).toEqual([])
    await session.locks.revoke({ key: 'key', fence, immediate: true }, call)
    await ear.channel.probe()
    expect(ear.keys).toEqual(['key'])
    await session.close()
  })

  it('never misses a waiter who was told that the key is held', { timeout: 30_000 }, async () => {
    await using database = await freshDatabase()
    const [holder, waiter] = [database.driver().open('ns'), database.driver().open('ns')]
    const ear = await hearing(waiter)
    let [missed, held] = [0, 0]
    for (let round = 0; round < 300; round++) {
      const key = `key-${round % 7}-${round}`
      const lease = asking(key)
      await holder.locks.acquire([lease], call)
      const [[answer]] = await Promise.all([
        waiter.locks.acquire([asking(key, { waitingMs: 10_000 })], call),
        holder.locks.release([lease], call).then(async ([released]) => {
          // The waiter's mark was just being written.
          while (released?.outcome === 'busy') [released] = await holder.locks.release([lease], call)
        }),
      ])
      if (answer?.outcome !== 'held') continue
      held++
      await ear.channel.probe()
      if (!ear.keys.includes(key)) missed++
    }
    expect(held).toBeGreaterThan(10)
    expect(missed).toBe(0)
    await Promise.all([holder.close(), waiter.close()])
  })

  it('is found out by a probe where a subscription succeeds and hears nothing', async () => {
    await using database = await freshDatabase()
    const clients: pg.Client[] = []
    const listen = () => {
      clients.push(new pg.Client(database.url))
      return clients.at(-1)!
    }
    const session = postgresDriver(database.pool(), { listen }).open('ns')
    const [deaf, sound] = [await hearing(session), await hearing(session)]
    await clients[0]!.query('unlisten *')
    let isHeard = false
    const probe = deaf.channel.probe().then(
      () => (isHeard = true),
      () => 'ended',
    )
    // Comes later than the other, had it come at all.
    await sound.channel.probe()
    await sound.channel.probe()
    expect(isHeard).toBe(false)
    await session.close()
    expect(await probe).toBe('ended')
  })

  it('does not keep the process alive by itself', async () => {
    await using database = await freshDatabase()
    const client = new pg.Client(database.url)
    const session = postgresDriver(database.pool(), { listen: () => client }).open('ns')
    await hearing(session)
    const { _handle: handle } = (
      client as unknown as { connection: { stream: { _handle: { hasRef(): boolean } } } }
    ).connection.stream
    expect(handle.hasRef()).toBe(false)
    await session.close()
  })

  it('is not offered where it is not wanted or cannot be had', async () => {
    await using database = await freshDatabase()
    for (const driver of [database.driver({ listen: false }), postgresDriver(plain(database))]) {
      expect(driver.abilities.push).toBe(false)
      expect(driver.open('ns').listen).toBeUndefined()
    }
  })

  it('is refused while the server is down, and had again after it came back', async () => {
    await using server = await startPostgres()
    await using database = await freshDatabase(server.url)
    const sql = postgres(server.url, { max: 1, connect_timeout: 2 })
    database.also(() => sql.end({ timeout: 1 }))
    const sessions = [database.driver(), postgresDriver(sql)].map((driver) => driver.open('ns'))
    const ears = await Promise.all(sessions.map(hearing))
    await server.stop()
    await expect.poll(() => ears.map(({ deafness }) => deafness.length)).toEqual([1, 1])
    for (const session of sessions) await expect(hearing(session)).rejects.toThrow()
    await server.restart()
    for (const session of sessions) await (await hearing(session)).channel.probe()
    await Promise.all(sessions.map((session) => session.close()))
  })

  it('that is still being opened when the session is closed is ended, too', async () => {
    await using database = await freshDatabase()
    let proceed = () => {}
    const open = new Promise<void>((resolve) => (proceed = resolve))
    const listen = async (): Promise<PgListenClient> => {
      await open
      return new pg.Client(database.url)
    }
    const session = postgresDriver(database.pool(), { listen }).open('ns')
    const opening = hearing(session)
    await session.close()
    proceed()
    await expect(opening).rejects.toThrow('closed')
    await expect.poll(() => listeners(database)).toEqual([])
  })

  it.each(['pg', 'postgres.js'])('is closed at once although its connection hangs: %s', async (kind) => {
    await using database = await freshDatabase()
    await using proxy = await startFaultProxy(database.url)
    const pool = database.pool()
    const session = postgresDriver(pool, {
      listen: (options) => (kind === 'pg' ? new pg.Client(proxy.url) : postgres(proxy.url, options)),
    }).open('ns')
    await hearing(session)
    await proxy.set('blackhole')
    const opening = hearing(session).catch(() => 'given up')
    await expect.poll(() => proxy.connections).toBe(2)
    await session.close()
    expect(await opening).toBe('given up')
  })
})
