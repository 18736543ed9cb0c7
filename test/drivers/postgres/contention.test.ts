import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { postgresDriver } from 'leasehold/postgres'
import { freshNamespace, isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase, waiting } from './database.ts'
import { stress } from './stress.ts'

describe.skipIf(!(await isAvailable('postgres')))('many nodes on the same rows', () => {
  let database: Database
  beforeAll(async () => (database = await freshDatabase()))
  afterAll(() => database[Symbol.asyncDispose]())

  const nodes = async (count: number, options = '') => {
    const namespace = freshNamespace()
    const clients = await Promise.all(Array.from({ length: count }, () => database.client({ options })))
    return clients.map((client) => postgresDriver(client, { listen: false }).open(namespace))
  }
  const deadlocks = async () =>
    Number(
      (await database.sql('select deadlocks from pg_stat_database where datname = current_database()'))[0]![
        'deadlocks'
      ],
    )

  it('neither deadlock nor overlap nor go back in their fences, whatever the order of their batches', async () => {
    const report = await stress(await nodes(16), { keys: 40, maxBatch: 12, forMs: 4_000 })
    expect(report.violations).toEqual([])
    expect(report.faults).toEqual({})
    expect(await deadlocks()).toBe(0)
    expect(report.granted).toBeGreaterThan(500)
    expect(report.renewed).toBeGreaterThan(100)
    expect(report.released).toBeGreaterThan(100)
  })

  it.each(['repeatable read', 'serializable'])(
    'hold the same promises where the default isolation is %s',
    async (level) => {
      const escaped = level.replaceAll(' ', '\\ ')
      const report = await stress(await nodes(8, `-c default_transaction_isolation=${escaped}`), {
        keys: 12,
        maxBatch: 4,
        forMs: 2_000,
      })
      expect(report.violations).toEqual([])
      // Refused for what others did meanwhile, which is certain not to have been applied.
      expect(Object.keys(report.faults)).toEqual(['retry 40001'])
      expect(report.granted).toBeGreaterThan(50)
      expect(report.renewed).toBeGreaterThan(10)
    },
  )
})

describe.skipIf(!(await isAvailable('postgres')))('a row that somebody else has locked', () => {
  let database: Database
  let session: DriverSession
  beforeAll(async () => {
    database = await freshDatabase()
    session = database.driver().open('ns')
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const grant = async (request: ReturnType<typeof asking>) => {
    const [answer] = await session.locks.acquire([request], call)
    expect(answer).toMatchObject({ outcome: 'granted' })
    return answer as Extract<typeof answer, { outcome: 'granted' }>
  }
  /** A transaction of somebody else that has locked the row in this way. */
  const lock = async (key: string, how: string) => {
    const client = await database.client()
    await client.query('begin')
    await client.query(`select from leasehold_leases where key = $1 for ${how}`, [key])
    return client
  }
  const lapse = (key: string) =>
    database.sql(`update leasehold_leases set expires_at = clock_timestamp() where key = $1`, [key])

  it('is busy to a renewal and to a release, never lost', async () => {
    const request = asking('locked')
    await grant(request)
    const stranger = await lock('locked', 'update')
    expect(await session.locks.refresh([request], call)).toEqual([{ outcome: 'busy' }])
    expect(await session.locks.release([request], call)).toEqual([{ outcome: 'busy' }])
    await stranger.query('rollback')
    expect(await session.locks.refresh([request], call)).toMatchObject([{ outcome: 'held' }])
    expect(await session.locks.release([request], call)).toEqual([{ outcome: 'released' }])
  })

  it('leaves the other items of its batch alone', async () => {
    const requests = ['a', 'b', 'c'].map((key) => asking(key))
    await session.locks.acquire(requests, call)
    const stranger = await lock('b', 'update')
    const outcomes = (await session.locks.refresh(requests, call)).map(({ outcome }) => outcome)
    expect(outcomes).toEqual(['held', 'busy', 'held'])
    await stranger.query('rollback')
  })

  it('is held to those who try while it is held', async () => {
    await grant(asking('looked-at'))
    const stranger = await lock('looked-at', 'update')
    expect(await session.locks.acquire([asking('looked-at')], call)).toMatchObject([{ outcome: 'held' }])
    await stranger.query('rollback')
  })

  it('is never one that a loser has locked', async () => {
    await grant(asking('contended'))
    await session.locks.acquire([asking('contended')], call)
    // The transaction that locked the row last, or 0.
    const lockedBy = await database.sql(`select xmax::text from leasehold_leases where key = 'contended'`)
    expect(lockedBy).toEqual([{ xmax: '0' }])
  })

  it('is busy to those who try once it has lapsed', async () => {
    await grant(asking('lapsed'))
    await lapse('lapsed')
    const stranger = await lock('lapsed', 'update')
    expect(await session.locks.acquire([asking('lapsed')], call)).toEqual([{ outcome: 'busy' }])
    await stranger.query('rollback')
    await grant(asking('lapsed'))
  })

  it('is waited for if the call says so, and a lease that lapsed meanwhile is lost', async () => {
    const lasting = asking('awaited')
    const brief = asking('awaited-in-vain', { ttlMs: 150 })
    await grant(lasting)
    await grant(brief)
    const [one, other] = [await lock('awaited', 'update'), await lock('awaited-in-vain', 'update')]
    const answers = session.locks.refresh([brief, lasting], waiting)
    await database.sql(`select pg_sleep(0.2)`)
    await one.query('rollback')
    await other.query('rollback')
    expect(await answers).toMatchObject([{ outcome: 'lost', reason: 'gone' }, { outcome: 'held' }])
  })

  it('guards a commit: its holder renews it, and nobody else is granted it until the guard has ended', async () => {
    const request = asking('guarded')
    await grant(request)
    const guard = await lock('guarded', 'key share')
    expect(await session.locks.refresh([request], call)).toMatchObject([{ outcome: 'held' }])
    await lapse('guarded')
    expect(await session.locks.acquire([asking('guarded')], call)).toEqual([{ outcome: 'busy' }])
    let isGranted = false
    const takeover = session.locks.acquire([asking('guarded')], waiting).then((answers) => {
      isGranted = true
      return answers
    })
    await database.sql(`select pg_sleep(0.1)`)
    expect(isGranted).toBe(false)
    await guard.query('commit')
    expect(await takeover).toMatchObject([{ outcome: 'granted' }])
  })
})
