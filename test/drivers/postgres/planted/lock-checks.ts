import { expect } from 'vitest'
import type { DriverFault } from '../../../../src/core/errors.ts'
import type { DriverSession } from 'leasehold/driver'
import type { Check } from '../../../support/planting.ts'
import { freshNamespace } from '../../../support/stores.ts'
import { asking, call, type Database, waiting } from '../database.ts'
import type { Trial } from './trial.ts'

/*
 * Checks about rows that several statements want at once. Whoever stands in the way is a transaction of the test, so
 * that each meeting takes place and none is left to chance.
 */

interface Scene {
  readonly database: Database
  readonly namespace: string
  /** A session on connections of its own, with these settings of the server. */
  open(settings?: string): DriverSession
  /** A transaction that has run this, until the answered function ends it. */
  stand(sql: string, values: readonly unknown[]): Promise<(how: 'commit' | 'rollback') => Promise<unknown>>
  /** Resolves when so many statements wait for locks. */
  untilWaiting(count: number): Promise<void>
}

function check(sentence: string, play: (scene: Scene) => Promise<void>): Check<Trial> {
  return { sentence, run: ({ postgresDriver, database }) => play(scene(postgresDriver, database)) }
}

function scene(postgresDriver: Trial['postgresDriver'], database: Database): Scene {
  const namespace = freshNamespace()
  return {
    database,
    namespace,
    open: (settings = '') => {
      const options = ['-c deadlock_timeout=20ms', settings].join(' ')
      return postgresDriver(database.pool({ options }), { listen: false }).open(namespace)
    },
    stand: async (sql, values) => {
      const client = await database.client()
      await client.query('begin')
      await client.query(sql, [...values])
      return (how) => client.query(how)
    },
    untilWaiting: (count) =>
      expect
        .poll(
          () =>
            database.sql(`select pid from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock'`),
          { interval: 5 },
        )
        .toHaveLength(count),
  }
}

const lockRow = (how: string): string =>
  `select from leasehold_leases where namespace = $1 and key = $2 for ${how}`

/** What became of calls: their outcomes, or the kind of their fault. */
function outcomesOf(calls: readonly Promise<readonly { readonly outcome: string }[]>[]): Promise<unknown> {
  const each = calls.map((answering) =>
    answering.then(
      (answers) => answers.map(({ outcome }) => outcome),
      (fault: DriverFault) => fault.kind,
    ),
  )
  return Promise.all(each)
}

/** Three keys each, the middle one in somebody else's hands: the first and the last cross. */
const crossing = [
  ['a', 'x', 'b'],
  ['b', 'y', 'a'],
] as const

export const batchesCross: Check<Trial> = check(
  'two renewals that wait for rows in opposite orders both come through',
  async ({ open, namespace, stand, untilWaiting }) => {
    const [one, other] = [open(), open()]
    const leases = ['a', 'b', 'x', 'y'].map((key) => asking(key))
    await one.locks.acquire(leases, call)
    const ends = await Promise.all(['x', 'y'].map((key) => stand(lockRow('update'), [namespace, key])))
    const batches = crossing.map((keys) => keys.map((key) => leases.find((lease) => lease.key === key)!))
    const renewals = [one, other].map(({ locks }, index) => locks.refresh(batches[index]!, waiting))
    await untilWaiting(2)
    for (const end of ends) await end('rollback')
    const held = ['held', 'held', 'held']
    expect(await outcomesOf(renewals)).toEqual([held, held])
  },
)

export const insertsCross: Check<Trial> = check(
  'two acquires of new keys in opposite orders both come through',
  async ({ open, namespace, stand, untilWaiting }) => {
    const [one, other] = [open(), open()]
    await one.locks.peek(['a'], call)
    const insert = `insert into leasehold_leases (namespace, key, fence, holder, acquired_at, expires_at)
      values ($1, $2, 1, '', now(), now())`
    const ends = await Promise.all(['x', 'y'].map((key) => stand(insert, [namespace, key])))
    const acquires = []
    for (const [index, { locks }] of [one, other].entries()) {
      const keys = crossing[index]!.map((key) => asking(key))
      acquires.push(locks.acquire(keys, call))
      await untilWaiting(index + 1)
    }
    for (const end of ends) await end('rollback')
    expect(await outcomesOf(acquires)).toEqual([
      ['granted', 'granted', 'granted'],
      ['busy', 'granted', 'busy'],
    ])
  },
)

export const losersLockNothing: Check<Trial> = check(
  'who finds a key held leaves its row unlocked, so that no renewal has to skip it',
  async ({ database, open, namespace }) => {
    const { locks } = open()
    await locks.acquire([asking('key')], call)
    await locks.acquire([asking('key')], call)
    // The transaction that locked the row last, or 0.
    const row = `select xmax::text from leasehold_leases where namespace = $1`
    expect(await database.sql(row, [namespace])).toEqual([{ xmax: '0' }])
  },
)

export const aKeyNamedTwiceFailsNobody: Check<Trial> = check(
  'a batch that names a key twice grants it once, and its other keys as well',
  async ({ open }) => {
    const batch = ['a', 'twice', 'twice', 'z'].map((key) => asking(key))
    const [outcomes] = (await outcomesOf([open().locks.acquire(batch, call)])) as [string[]]
    expect(outcomes).toEqual(['granted', 'granted', expect.stringMatching(/^(busy|held)$/), 'granted'])
  },
)

export const aGuardIsNotOvertaken: Check<Trial> = check(
  'a lapsed key is not granted while a transaction guards its commit by the row',
  async ({ database, open, namespace, stand }) => {
    const { locks } = open()
    await locks.acquire([asking('key')], call)
    const end = await stand(lockRow('key share'), [namespace, 'key'])
    await database.sql('update leasehold_leases set expires_at = now() where namespace = $1', [namespace])
    const answers = await locks.acquire([asking('key')], call)
    await end('commit')
    expect(answers).toEqual([{ outcome: 'busy' }])
  },
)

export const aGuardDoesNotStarveItsHolder: Check<Trial> = check(
  'a lease is renewed while a transaction guards its commit by the row',
  async ({ open, namespace, stand }) => {
    const { locks } = open()
    const lease = asking('key')
    await locks.acquire([lease], call)
    const end = await stand(lockRow('key share'), [namespace, 'key'])
    const answers = await locks.refresh([lease], call)
    await end('commit')
    expect(answers).toMatchObject([{ outcome: 'held' }])
  },
)

export const waitingTakesTime: Check<Trial> = check(
  'a lease that lapsed while its renewal waited for the row is lost',
  async ({ database, open, namespace, stand, untilWaiting }) => {
    const { locks } = open()
    const lease = asking('key', { ttlMs: 300 })
    await locks.acquire([lease], call)
    const end = await stand(lockRow('update'), [namespace, 'key'])
    const renewal = locks.refresh([lease], waiting)
    await untilWaiting(1)
    await database.sql('select pg_sleep(0.35)')
    await end('rollback')
    expect(await renewal).toEqual([{ outcome: 'lost', reason: 'gone' }])
  },
)

export const aSerializationFailureIsARetry: Check<Trial> = check(
  'a statement that the isolation of the database refuses was certainly not applied',
  async ({ open, namespace, stand, untilWaiting }) => {
    const { locks } = open('-c default_transaction_isolation=repeatable\\ read')
    const lease = asking('key')
    await locks.acquire([lease], call)
    const change = `update leasehold_leases set holder = 'another' where namespace = $1 and key = $2`
    const end = await stand(change, [namespace, 'key'])
    const renewal = locks.refresh([lease], waiting)
    await untilWaiting(1)
    await end('commit')
    expect(await outcomesOf([renewal])).toEqual(['retry'])
  },
)

export const noWaiterIsMissed: Check<Trial> = check(
  'a release that is under way wakes the waiter who is told "held" meanwhile',
  async ({ database, open, namespace, stand, untilWaiting }) => {
    const [holder, waiter] = [open(), open()]
    const leases = [asking('first'), asking('second')]
    await holder.locks.acquire(leases, call)
    const notices: string[] = []
    const listening = database.driver().open(namespace)
    const channel = await listening.listen!({
      onNotice: (notice) => notices.push(notice.kind === 'released' ? notice.key : ''),
      onDeaf: () => {},
    })
    const end = await stand(lockRow('update'), [namespace, 'first'])
    // The release has looked at the table, and comes no further than the first row.
    const releasing = holder.locks.release(leases, waiting)
    await untilWaiting(1)
    const answers = await waiter.locks.acquire([asking('second', { waitingMs: 60_000 })], call)
    expect(answers).toMatchObject([{ outcome: 'held' }])
    await end('rollback')
    await releasing
    await channel.probe()
    await listening.close()
    expect(notices).toEqual(['second'])
  },
)
