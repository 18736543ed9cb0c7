import { describe, expect, it } from 'vitest'
import { postgresDriver } from 'leasehold/postgres'
import { startPostgres } from '../../support/servers.ts'
import { isAvailable } from '../../support/stores.ts'
import { asking, call, freshDatabase } from './database.ts'

describe.skipIf(!(await isAvailable('postgres')))('the upkeep of the tables', () => {
  it('renews a thousand leases with one statement', async () => {
    await using database = await freshDatabase()
    const pool = database.pool()
    let statements = 0
    const counted = { query: (text: string, values: string[]) => (statements++, pool.query(text, values)) }
    const { locks } = postgresDriver(counted).open('ns')
    const leases = Array.from({ length: 1_000 }, (_, index) => asking(`key-${index}`))
    await locks.acquire(leases, call)
    statements = 0
    const answers = await locks.refresh(leases, call)
    expect(statements).toBe(1)
    expect(answers.filter(({ outcome }) => outcome === 'held')).toHaveLength(1_000)
  })

  it('is spared by renewals: they leave the indexes alone', async () => {
    // Alone: a snapshot of somebody else, an analyze too, keeps old row versions from being pruned.
    await using server = await startPostgres({ config: { autovacuum: 'off' } })
    await using database = await freshDatabase(server.url)
    const client = await database.client()
    const { locks } = postgresDriver(client).open('ns')
    const leases = Array.from({ length: 20 }, (_, index) => asking(`key-${index}`))
    await locks.acquire(leases, call)
    for (let round = 0; round < 100; round++) await locks.refresh(leases, call)
    await client.query('select pg_stat_force_next_flush()')
    await client.query('select 1')
    const [counts] = await database.sql(
      `select n_tup_upd::int as updates, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'leasehold_leases'`,
    )
    expect(counts!['updates']).toBe(2_000)
    expect(counts!['hot']).toBeGreaterThan(1_990)
  })

  it('is spared by waiters: a mark that reaches far enough is not written again', async () => {
    await using database = await freshDatabase()
    const { locks } = database.driver().open('ns')
    await locks.acquire([asking('key')], call)
    const version = async () =>
      (await database.sql('select ctid::text, waiting_until from leasehold_leases'))[0]
    await locks.acquire([asking('key', { waitingMs: 10_000 })], call)
    const first = await version()
    for (let waiter = 0; waiter < 5; waiter++) {
      expect(await locks.acquire([asking('key', { waitingMs: 10_000 })], call)).toMatchObject([
        { outcome: 'held' },
      ])
    }
    expect(await version()).toEqual(first)
    await locks.acquire([asking('key', { waitingMs: 60_000 })], call)
    expect(await version()).not.toEqual(first)
  })

  it('purges a table bit by bit, and comes round to every row', async () => {
    await using database = await freshDatabase()
    const { locks } = database.driver().open('ns')
    const held = Array.from({ length: 50 }, (_, index) => asking(`a-${index}`))
    const free = Array.from({ length: 30 }, (_, index) => asking(`b-${index}`))
    await locks.acquire([...held, ...free], call)
    await locks.release(free, call)
    const purged: number[] = []
    // 4 × 10 rows are looked at each time: held ones first, then the free ones.
    for (let round = 0; round < 5; round++)
      purged.push(await locks.purge({ retentionMs: 0, limit: 10 }, call))
    expect(purged).toEqual([0, 10, 10, 10, 0])
    expect(await database.sql('select count(*)::int as n from leasehold_leases')).toEqual([{ n: 50 }])
  })

  it('purges a log bit by bit, and keeps runs that have not ended', async () => {
    await using database = await freshDatabase()
    const { tasks } = database.driver().open('ns')
    await tasks.poll(call)
    await database.sql(`insert into leasehold_runs (namespace, task, slot, attempt, state, follows, gap, started_at, ended_at)
      select 'ns', 'task-' || i % 3, i, 1, 'succeeded', 0, '', now(), case when i > 20 then now() end
        from generate_series(1, 60) i`)
    const purged: number[] = []
    for (let round = 0; round < 9; round++)
      purged.push(await tasks.purge({ retentionMs: 0, limit: 10 }, call))
    expect(purged.reduce((sum, count) => sum + count)).toBe(40)
    expect(await database.sql('select count(*)::int as n from leasehold_runs')).toEqual([{ n: 20 }])
  })

  it('finds the old rows of a log without looking at the young ones, however many they are', async () => {
    await using database = await freshDatabase()
    const client = await database.client()
    const { tasks } = postgresDriver(client, { listen: false }).open('ns')
    await tasks.poll(call)
    const hourMs = 3_600_000
    await database.sql(`insert into leasehold_runs (namespace, task, slot, attempt, state, follows, gap, started_at, ended_at)
      select 'ns', 'task-' || i % 5, (extract(epoch from now()) * 1000)::bigint - i, 1, 'succeeded', 0, '', now(), now()
        from generate_series(1, 50000) i`)
    await database.sql(`insert into leasehold_runs (namespace, task, slot, attempt, state, follows, gap, started_at, ended_at)
      select 'ns', 'task-' || i % 5, (extract(epoch from now()) * 1000)::bigint - ${2 * hourMs} + i, 1, 'succeeded', 0, '',
             now() - interval '2 hours', now() - interval '2 hours'
        from generate_series(1, 400) i`)
    await client.query('select pg_stat_force_next_flush()')
    await client.query('select 1')
    await database.sql('select pg_stat_reset()')
    expect(await tasks.purge({ retentionMs: hourMs, limit: 500 }, call)).toBe(400)
    expect(await tasks.purge({ retentionMs: hourMs, limit: 500 }, call)).toBe(0)
    await client.query('select pg_stat_force_next_flush()')
    await client.query('select 1')
    const [reads] = await database.sql(
      `select seq_scan::int as scans, idx_tup_fetch::int as fetched from pg_stat_user_tables where relname = 'leasehold_runs'`,
    )
    expect(reads!['scans']).toBe(0)
    expect(reads!['fetched']).toBeLessThan(5_000)
  })

  it('comes round to the rows of every task, however many of one are in its way', async () => {
    await using database = await freshDatabase()
    const { tasks } = database.driver().open('ns')
    await tasks.poll(call)
    // Decided long after their slots: 4 × 10 rows are looked at each time, and these are too young to go.
    await database.sql(`insert into leasehold_runs (namespace, task, slot, attempt, state, follows, gap, started_at, ended_at)
      select 'ns', case when i <= 90 then 'a' else 'b-' || i end, i, 1, 'missed', 0, '', now(),
             case when i <= 90 then now() else now() - interval '1 day' end
        from generate_series(1, 190) i`)
    const purged: number[] = []
    for (let round = 0; round < 16; round++)
      purged.push(await tasks.purge({ retentionMs: 3_600_000, limit: 10 }, call))
    expect(purged.slice(0, 2)).toEqual([0, 0])
    expect(purged.reduce((sum, count) => sum + count)).toBe(100)
    expect(Math.max(...purged)).toBe(10)
    expect(await database.sql('select count(*)::int as n from leasehold_runs')).toEqual([{ n: 90 }])
  })
})
