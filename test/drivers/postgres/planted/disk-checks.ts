import pg from 'pg'
import { expect } from 'vitest'
import type { ClaimAnswer, DriverSession } from 'leasehold/driver'
import type { Check } from '../../../support/planting.ts'
import type { TestServer } from '../../../support/servers.ts'
import { asking, call, token } from '../database.ts'
import { ownServer } from './own-server.ts'
import type { Trial } from './trial.ts'

/* Checks about what a crash of the server may forget, on a server of their own. */

/** A client on the server of these checks, and a session of the driver under trial over it. */
async function connect({ postgresDriver }: Trial): Promise<{
  readonly server: TestServer
  readonly client: pg.Client
  readonly session: DriverSession
}> {
  const server = await ownServer()
  const client = new pg.Client(server.url)
  client.on('error', () => {})
  await client.connect()
  const session = postgresDriver(client, { listen: false }).open('ns')
  await session.tasks.poll(call)
  return { server, client, session }
}

export const aRenewalOutlivesACrash: Check<Trial> = {
  sentence: 'a renewal that was answered outlives a crash of the server',
  async run(trial) {
    const before = await connect(trial)
    const lease = asking(`survivor ${token()}`, { ttlMs: 5_000 })
    await before.session.locks.acquire([lease], call)
    await before.session.locks.refresh([{ ...lease, ttlMs: 600_000 }], call)
    await before.server.kill()
    await before.server.restart()
    const after = await connect(trial)
    const [record] = await after.session.locks.peek([lease.key], call)
    await after.client.end()
    expect(record?.remainingMs).toBeGreaterThan(500_000)
  },
}

export const anOutcomeIsOnTheDisk: Check<Trial> = {
  sentence: 'the outcome of a run is on the disk when it is answered',
  async run(trial) {
    const { client, session } = await connect(trial)
    const { tasks } = session
    const schedule = { task: `task ${token()}`, fingerprint: 'f', definition: '{}', attendMs: 60_000 }
    const [registered] = await tasks.register([{ ...schedule, starting: true }], call)
    const { mark } = registered as { mark: number }
    const slot = { slot: mark + 1, after: mark, gap: '', token: token(), ttlMs: 60_000, holder: '{}' }
    const policy = { overlap: 'skip', onCrash: 'skip', maxAttempts: 1, decide: 'run', reason: '' } as const
    let answer: ClaimAnswer | undefined
    do [answer] = await tasks.claim([{ ...schedule, ...slot, ...policy }], call)
    while (answer?.outcome === 'early')
    if (answer?.outcome !== 'granted') throw new Error(`It was not granted: ${answer?.outcome}.`)
    const run = { slot: answer.slot, attempt: answer.attempt, fence: answer.fence }
    const done = { task: schedule.task, ...run, outcome: 'succeeded', reason: null, error: null } as const
    await tasks.complete([done], call)
    const { rows } = await client.query(
      'select pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() as yes',
    )
    await client.end()
    expect(rows).toEqual([{ yes: true }])
  },
}
