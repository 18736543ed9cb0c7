import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import type { DriverFault } from '../../../../src/core/errors.ts'
import type { Check } from '../../../support/planting.ts'
import { asking, call } from '../database.ts'
import { ownServer } from './own-server.ts'
import type { Trial } from './trial.ts'

/* Checks about what statements cost: what they read, what they write, and whose connection they take. */

let made = 0
/** Tables of a check's own. */
const freshPrefix = (): string => `planted_${++made}_`

export const renewalsLeaveTheIndexesAlone: Check<Trial> = {
  sentence: 'a renewal writes to no index',
  async run({ postgresDriver }) {
    const tablePrefix = freshPrefix()
    const client = new pg.Client((await ownServer()).url)
    onTestFinished(() => client.end())
    await client.connect()
    const { locks } = postgresDriver(client, { tablePrefix }).open('ns')
    const leases = Array.from({ length: 20 }, (_, index) => asking(`key-${index}`))
    await locks.acquire(leases, call)
    for (let round = 0; round < 20; round++) await locks.refresh(leases, call)
    await client.query('select pg_stat_force_next_flush()')
    await client.query('select 1')
    const { rows } = await client.query<{ updates: number; hot: number }>(
      `select n_tup_upd::int as updates, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = $1`,
      [`${tablePrefix}leases`],
    )
    const [counts] = rows
    expect(counts!.updates).toBe(400)
    expect(counts!.hot).toBeGreaterThan(390)
  },
}

export const plansDoNotScan: Check<Trial> = {
  sentence: 'a renewal reads the rows it names, by a plan that was made while the table was empty',
  async run({ postgresDriver, database }) {
    const tablePrefix = freshPrefix()
    const client = await database.client({ options: '-c plan_cache_mode=force_generic_plan' })
    const { locks } = postgresDriver(client, { tablePrefix, namedStatements: true }).open('ns')
    await locks.refresh([asking('key')], call)
    const table = `${tablePrefix}leases`
    await database.sql(`alter table ${table} set (autovacuum_enabled = false)`)
    await database.sql(`insert into ${table} (namespace, key, token, fence, holder, acquired_at, expires_at)
      select 'ns', 'stranger-' || i, 'x', i, '', now(), now() + interval '1 hour' from generate_series(1, 5000) i`)
    const lease = asking('key')
    await locks.acquire([lease], call)
    const read = async () => {
      await client.query('select pg_stat_force_next_flush()')
      await client.query('select 1')
      const [row] = await database.sql(
        `select seq_tup_read::int + coalesce(idx_tup_fetch, 0)::int as rows from pg_stat_user_tables where relname = $1`,
        [table],
      )
      return row!['rows'] as number
    }
    const before = await read()
    expect(await locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
    expect((await read()) - before).toBeLessThan(100)
  },
}

export const aTakenPoolSendsNothing: Check<Trial> = {
  sentence: 'a call for which the pool has no connection was certainly not sent',
  async run({ postgresDriver, database }) {
    const pool = database.pool({ max: 1, connectionTimeoutMillis: 500 })
    const taken = await pool.connect()
    const kind = await postgresDriver(pool, { listen: false })
      .open('ns')
      .tasks.poll(call)
      .then(
        () => 'answered',
        (fault: DriverFault) => fault.kind,
      )
    taken.release()
    expect(kind).toBe('not-sent')
  },
}
