import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase, token } from './database.ts'

const strangers = 50_000
const batch = 20

const tables = ['leasehold_leases', 'leasehold_tasks', 'leasehold_runs', 'leasehold_namespaces']

describe.skipIf(!(await isAvailable('postgres')))('what statements read on a big table', () => {
  const prepare = async (database: Database, client: pg.Client, namedStatements: boolean) => {
    const session = postgresDriver(client, { namedStatements, listen: false }).open('ours')
    await session.tasks.poll(call)
    for (const table of tables) await database.sql(`alter table ${table} set (autovacuum_enabled = false)`)
    return session
  }

  it(
    'is only the rows they name, with plans made while the tables were empty',
    { timeout: 60_000 },
    async () => {
      await using database = await freshDatabase()
      const client = await database.client({ options: '-c plan_cache_mode=force_generic_plan' })
      const session = await prepare(database, client, true)
      await everyVerb(session, 'first')
      await addStrangers(database, 'ours')
      await addStrangers(database, 'theirs')
      await readsOf(client, database)
      await everyVerb(session, 'second')
      expectFewReads(await readsOf(client, database))
    },
  )

  it.each([
    ['nothing', [], ['ours', 'theirs']],
    ['all of it', ['ours', 'theirs'], []],
    ['other namespaces', ['theirs'], ['ours']],
  ])('is only the rows they name, with statistics of %s', { timeout: 60_000 }, async (_of, before, after) => {
    await using database = await freshDatabase()
    const client = await database.client()
    const session = await prepare(database, client, false)
    for (const namespace of before) await addStrangers(database, namespace)
    if (before.length > 0) await database.sql('analyze')
    for (const namespace of after) await addStrangers(database, namespace)
    await readsOf(client, database)
    await everyVerb(session, 'first')
    expectFewReads(await readsOf(client, database))
  })
})

interface Reads {
  readonly table: string
  /** How often it was read from end to end. */
  readonly scans: number
  /** Rows fetched by way of an index. */
  readonly fetched: number
}

async function addStrangers(database: Database, namespace: string): Promise<void> {
  const from = `from generate_series(1, ${strangers}) i`
  const key = `'stranger-' || md5(i::text)`
  const columns = 'namespace, task, mark, fingerprint, definition, registered_at, attended_until'
  await database.sql(`insert into leasehold_leases (namespace, key, token, fence, holder, acquired_at, expires_at)
    select '${namespace}', ${key}, 'x', i, '', now(), now() + interval '1 hour' ${from}`)
  await database.sql(
    `insert into leasehold_tasks (${columns}) select '${namespace}', ${key}, 0, '', '', now(), now() ${from}`,
  )
  await database.sql(`insert into leasehold_runs (namespace, task, slot, attempt, state, follows, gap, started_at, ended_at)
    select '${namespace}', 'second-' || i % ${batch}, i, 1, 'succeeded', 0, '', now(), now() ${from}`)
  await database.sql(
    `insert into leasehold_namespaces select '${namespace}-' || i, 0 ${from} where i <= 2000`,
  )
}

/** What the driver's connection has read since the last time. */
async function readsOf(client: pg.Client, database: Database): Promise<Reads[]> {
  // The server keeps its counts back for up to a second, unless told.
  await client.query('select pg_stat_force_next_flush()')
  await client.query('select 1')
  const rows = await database.sql(
    `select relname, seq_scan, idx_tup_fetch from pg_stat_user_tables order by relname`,
  )
  await database.sql('select pg_stat_reset()')
  return rows.map((row) => ({
    table: String(row['relname']),
    scans: Number(row['seq_scan']),
    fetched: Number(row['idx_tup_fetch']),
  }))
}

/** No table was read from end to end, and no index was walked for much more than batches asked for. */
function expectFewReads(reads: readonly Reads[]): void {
  expect(reads.map(({ table }) => table)).toEqual(tables.toSorted())
  for (const { table, fetched } of reads) {
    if (table !== 'leasehold_namespaces') expect(fetched, table).toBeGreaterThan(batch)
  }
  expect(reads.filter(({ scans, fetched }) => scans > 0 || fetched > 100 * batch)).toEqual([])
}

async function everyVerb({ locks, tasks }: DriverSession, stem: string): Promise<void> {
  const names = Array.from({ length: batch }, (_, index) => `${stem}-${index}`)
  const leases = names.map((key) => asking(key))
  const granted = await locks.acquire(leases, call)
  expect(granted.map(({ outcome }) => outcome)).toEqual(names.map(() => 'granted'))
  const waiters = names.map((key) => asking(key, { waitingMs: 10_000 }))
  expect((await locks.acquire(waiters, call)).map(({ outcome }) => outcome)).toEqual(names.map(() => 'held'))
  expect((await locks.refresh(leases, call)).map(({ outcome }) => outcome)).toEqual(names.map(() => 'held'))
  expect(await locks.peek(names, call)).not.toContain(null)
  expect((await locks.scan({ prefix: `${stem}-`, limit: batch, cursor: null }, call)).records).toHaveLength(
    batch,
  )
  const seen = granted[0]!.outcome === 'granted' ? granted[0]!.fence : 0
  expect((await locks.revoke({ key: names[0]!, fence: seen, immediate: false }, call)).outcome).toBe(
    'revoked',
  )
  expect((await locks.release(leases, call)).map(({ outcome }) => outcome)).toEqual(
    names.map(() => 'released'),
  )
  expect(await locks.purge({ retentionMs: 3_600_000, limit: batch }, call)).toBe(0)

  const schedule = { fingerprint: 'f', definition: '{}', attendMs: 60_000 }
  const registrations = names.map((task) => ({ task, starting: true, ...schedule }))
  const registered = await tasks.register(registrations, call)
  const again = await tasks.register(
    registrations.map((one) => ({ ...one, fingerprint: 'g' })),
    call,
  )
  expect(again.map(({ outcome }) => outcome)).toEqual(names.map(() => 'raised'))
  const { now: after } = again.at(-1) as { now: number }
  const claims = names.map((task, index) => {
    const { mark } = again[index] as { mark: number }
    return {
      ...schedule,
      fingerprint: 'g',
      task,
      slot: mark + 1,
      after: mark,
      gap: '',
      token: token(),
      ttlMs: 20,
    }
  })
  const policy = {
    holder: '{}',
    overlap: 'skip',
    onCrash: 'retry',
    maxAttempts: 3,
    decide: 'run',
    reason: '',
  } as const
  let runs = await tasks.claim(
    claims.map((one) => ({ ...one, ...policy })),
    call,
  )
  while (runs.some(({ outcome }) => outcome === 'early'))
    runs = await tasks.claim(
      claims.map((one) => ({ ...one, ...policy })),
      call,
    )
  expect(runs.map(({ outcome }) => outcome)).toEqual(names.map(() => 'granted'))
  let taken = runs
  while (taken.some(({ outcome }) => outcome !== 'takeover')) {
    taken = await tasks.claim(
      claims.map((one) => ({ ...one, ...policy, token: `${one.token}-2`, ttlMs: 60_000 })),
      call,
    )
  }
  const renewals = claims.map(({ task, token: first }) => ({ task, token: `${first}-2`, ttlMs: 60_000 }))
  expect((await tasks.refresh(renewals, call)).map(({ outcome }) => outcome)).toEqual(names.map(() => 'held'))
  const control = { task: names[0]!, requestId: stem, by: 'test', fence: null }
  expect((await tasks.control({ ...control, kind: 'cancel' }, call)).outcome).toBe('applied')
  const outcomes = taken.map((run, index) => {
    const { slot, attempt, fence } = run as { slot: number; attempt: number; fence: number }
    return {
      task: names[index]!,
      slot,
      attempt,
      fence,
      outcome: 'succeeded',
      reason: null,
      error: null,
    } as const
  })
  expect((await tasks.complete(outcomes, call)).map(({ outcome }) => outcome)).toEqual(
    names.map(() => 'completed'),
  )
  const late = outcomes.map((one, index) => ({
    ...one,
    attempt: 1,
    fence: (runs[index] as { fence: number }).fence,
  }))
  expect((await tasks.complete(late, call)).map(({ outcome }) => outcome)).toEqual(names.map(() => 'late'))
  expect((await tasks.poll(call)).version).toBeGreaterThan(0)
  expect(await tasks.inspect(names, call)).not.toContain(null)
  expect(await tasks.log({ task: names[0]!, from: null, to: null, limit: 5 }, call)).not.toEqual([])
  expect(await tasks.purge({ retentionMs: 3_600_000, limit: batch }, call)).toBe(0)
  expect([registered.length, after]).toEqual([batch, expect.any(Number)])
}
