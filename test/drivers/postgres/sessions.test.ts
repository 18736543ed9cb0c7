import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresDriver } from 'leasehold/postgres'
import { freshNamespace, isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase, token } from './database.ts'

/* Poolers swap the connections below a client at any moment: nothing may live in a session of the server. */

describe.skipIf(!(await isAvailable('postgres')))('a session of the server', () => {
  let database: Database
  beforeAll(async () => (database = await freshDatabase()))
  afterAll(() => database[Symbol.asyncDispose]())

  it('is not needed: leases and runs go on although each statement takes a connection of its own (N38, M31)', async () => {
    let opened = 0
    const client = {
      async query(text: string, values: unknown[]) {
        const connection = new pg.Client(database.url)
        opened++
        await connection.connect()
        const { rows } = await connection.query(text, values)
        await connection.end()
        return rows
      },
    }
    const { locks, tasks } = postgresDriver(client).open(freshNamespace())
    const lease = asking('key')
    expect(await locks.acquire([lease], call)).toMatchObject([{ outcome: 'granted' }])
    expect(await locks.acquire([asking('key')], call)).toMatchObject([{ outcome: 'held' }])
    expect(await locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
    expect(await locks.release([lease], call)).toEqual([{ outcome: 'released' }])

    const schedule = { task: 'task', fingerprint: 'f', definition: '{}', attendMs: 60_000 }
    const [registered] = await tasks.register([{ ...schedule, starting: true }], call)
    const { mark } = registered as { mark: number }
    const run = { slot: mark + 1, after: mark, gap: '', token: token(), ttlMs: 60_000, holder: '{}' }
    const policy = { overlap: 'skip', onCrash: 'skip', maxAttempts: 1, decide: 'run', reason: '' } as const
    const [claimed] = await tasks.claim([{ ...schedule, ...run, ...policy }], call)
    if (claimed?.outcome !== 'granted') throw new Error(`The slot was not granted: ${claimed?.outcome}.`)
    const { slot, attempt, fence } = claimed
    const outcome = { outcome: 'succeeded', reason: null, error: null } as const
    expect(await tasks.refresh([{ task: 'task', token: run.token, ttlMs: 60_000 }], call)).toMatchObject([
      { outcome: 'held' },
    ])
    expect(await tasks.complete([{ task: 'task', slot, attempt, fence, ...outcome }], call)).toMatchObject([
      { outcome: 'completed' },
    ])
    expect(opened).toBeGreaterThan(8)
  })

  it('holds nothing: the lease of a connection that is gone excludes others until its ttl, and no longer (N38)', async () => {
    const namespace = freshNamespace()
    const client = await database.client({ application_name: 'dropped' })
    const [lease, brief] = [asking('key'), asking('brief', { ttlMs: 150 })]
    await postgresDriver(client, { listen: false }).open(namespace).locks.acquire([lease, brief], call)
    const held = `select from pg_locks join pg_stat_activity using (pid) where application_name = 'dropped'`
    expect(await database.sql(held)).toEqual([])
    await database.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'dropped'`)

    const { locks } = database.driver({ listen: false }).open(namespace)
    expect(await locks.acquire([asking('key')], call)).toMatchObject([{ outcome: 'held' }])
    const takeOver = async () => (await locks.acquire([asking('brief')], call))[0]?.outcome
    await expect.poll(takeOver, { interval: 20 }).toBe('granted')
    expect(await locks.release([lease], call)).toEqual([{ outcome: 'released' }])
  })
})
