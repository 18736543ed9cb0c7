import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClaimAnswer } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { startPostgres, type TestServer } from '../../support/servers.ts'
import { isAvailable } from '../../support/stores.ts'
import { asking, call } from './database.ts'

// A crash itself is in planted/disk-checks.ts. Asynchronous by default, and nobody writes to the disk for ten seconds unless a commit asks for it.
const config = {
  wal_writer_delay: '10s',
  synchronous_commit: 'off',
  autovacuum: 'off',
  bgwriter_lru_maxpages: '0',
}

describe.skipIf(!(await isAvailable('postgres')))('where commits are asynchronous by default', () => {
  let server: TestServer
  let client: pg.Client
  beforeAll(async () => (server = await startPostgres({ config })))
  afterAll(() => server.close())

  const connect = async () => {
    client = new pg.Client(server.url)
    client.on('error', () => {})
    await client.connect()
    return postgresDriver(client, { listen: false }).open('ns')
  }
  /** Whether all that was written until now would survive a crash. */
  const isOnDisk = async () => {
    const { rows } = await client.query(
      'select pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() as yes',
    )
    return rows[0].yes as boolean
  }

  it('all that must not be lost is on the disk when it is answered', async () => {
    const { locks, tasks } = await connect()
    await tasks.poll(call)
    const lease = asking('key')
    const durable: [string, () => Promise<unknown>][] = []
    const schedule = { task: 'task', fingerprint: 'f', definition: '{}', attendMs: 60_000 }
    let run: Extract<ClaimAnswer, { outcome: 'granted' | 'takeover' }>
    const claim = async () => {
      const [state] = await tasks.inspect(['task'], call)
      const slot = {
        slot: state!.mark + 1,
        after: state!.mark,
        gap: '',
        token: 'run-1',
        ttlMs: 60_000,
        holder: '{}',
      }
      const policy = { overlap: 'skip', onCrash: 'skip', maxAttempts: 1, decide: 'run', reason: '' } as const
      const [answer] = await tasks.claim([{ ...schedule, ...slot, ...policy }], call)
      if (answer?.outcome !== 'granted') throw new Error(answer?.outcome)
      run = answer
    }
    durable.push(['grant', () => locks.acquire([lease], call)])
    durable.push(['renewal', () => locks.refresh([{ ...lease, ttlMs: 90_000 }], call)])
    durable.push([
      'revocation',
      async () => {
        const [record] = await locks.peek(['key'], call)
        return locks.revoke({ key: 'key', fence: record!.fence, immediate: false }, call)
      },
    ])
    durable.push(['registration', () => tasks.register([{ ...schedule, starting: true }], call)])
    durable.push(['claim', claim])
    durable.push([
      'renewal of a run',
      () => tasks.refresh([{ task: 'task', token: 'run-1', ttlMs: 90_000 }], call),
    ])
    durable.push([
      'control',
      () => tasks.control({ task: 'task', kind: 'pause', requestId: '1', by: 'me', fence: null }, call),
    ])
    durable.push([
      'outcome',
      () => {
        const { slot, attempt, fence } = run
        return tasks.complete(
          [{ task: 'task', slot, attempt, fence, outcome: 'succeeded', reason: null, error: null }],
          call,
        )
      },
    ])
    for (const [what, verb] of durable) {
      // Something of somebody else's that is not on the disk, so that a verb that writes nothing is found out, too.
      await client.query(`select pg_logical_emit_message(true, 'noise', 'x')`)
      expect(await isOnDisk(), `before ${what}`).toBe(false)
      await verb()
      expect(await isOnDisk(), what).toBe(true)
    }
    await client.end()
  })

  it('a release does not wait for the disk, and leaves the session as it was', async () => {
    const { locks } = await connect()
    const lease = asking('released')
    await locks.acquire([lease], call)
    expect(await isOnDisk()).toBe(true)
    expect(await locks.release([lease], call)).toEqual([{ outcome: 'released' }])
    expect(await isOnDisk()).toBe(false)
    expect((await client.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'off' }])
    await client.query('set synchronous_commit = local')
    const other = asking('other')
    await locks.acquire([other], call)
    await locks.release([other], call)
    expect((await client.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'local' }])
    await client.end()
  })
})
