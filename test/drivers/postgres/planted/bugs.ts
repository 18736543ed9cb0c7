import { DriverFault } from '../../../../src/core/errors.ts'
import type { TableNames } from '../../../../src/drivers/postgres/schema.sql.ts'
import { type PlantedBug, reword } from '../../../support/planting.ts'
import { joinedRefreshSql } from './joined-refresh.sql.ts'
import * as disk from './disk-checks.ts'
import * as locks from './lock-checks.ts'
import * as tables from './table-checks.ts'
import { contract, type Trial } from './trial.ts'
import { upsertSql } from './upsert.sql.ts'

const statements = 'postgres/locks.sql'

/** Takes faults that match for those of another kind. */
const mistaking = (matches: (fault: DriverFault) => boolean, kind: DriverFault['kind']) => {
  return ({ toFault }: { toFault?: (error: unknown) => DriverFault }) => ({
    toFault: (error: unknown) => {
      const fault = toFault!(error)
      return matches(fault) ? new DriverFault(kind, fault.message, { cause: fault.cause }) : fault
    },
  })
}

/** Ways to get leases and tasks in PostgreSQL wrong, each a few words away from what is right. */
export const bugs: readonly PlantedBug<Trial>[] = [
  {
    name: 'a renewal sets the expiry, also to a sooner moment',
    module: statements,
    plant: reword('refreshSql', [
      'greatest(l.expires_at, clock_timestamp() + m.ttl)',
      'clock_timestamp() + m.ttl',
    ]),
    caughtBy: [contract('a refresh never shortens the lease')],
  },
  {
    name: 'an acquire that is asked for again answers the expiry of the first time',
    module: statements,
    plant: reword('acquireSql', [
      'greatest(case when m.again then l.expires_at end, clock_timestamp() + m.ttl)',
      'case when m.again then l.expires_at else clock_timestamp() + m.ttl end',
    ]),
    caughtBy: [contract('asked again with the same token, the expiry is re-armed (M29)')],
  },
  {
    name: 'a renewal commits asynchronously, as if a lost one only shortened the lease',
    module: statements,
    plant: reword('refreshSql', [
      `case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end`,
      `'off'`,
    ]),
    caughtBy: [disk.aRenewalOutlivesACrash],
  },
  {
    name: 'an outcome commits asynchronously, like a release',
    module: 'postgres/tasks.sql',
    plant: reword('completeSql', [
      `case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end`,
      `'off'`,
    ]),
    caughtBy: [disk.anOutcomeIsOnTheDisk],
  },
  {
    name: 'a row that a renewal has to skip is taken for lost',
    module: statements,
    plant: reword('refreshSql', [`json_build_array('busy')`, `json_build_array('gone')`]),
    caughtBy: [
      contract('a record that another statement has locked is busy, and no other item waits for it'),
    ],
  },
  {
    name: 'a row that an acquire has to skip is taken for held',
    module: statements,
    plant: reword('acquireSql', [
      `else json_build_array('busy')`,
      `else json_build_array('held', l.fence, 1000, '')`,
    ]),
    caughtBy: [contract('a lapsed record that another statement has locked is busy: not free, not held')],
  },
  {
    name: 'an acquire is one upsert',
    module: statements,
    plant: () => ({ acquireSql: upsertSql }),
    caughtBy: [locks.losersLockNothing, locks.aKeyNamedTwiceFailsNobody, locks.insertsCross],
  },
  {
    name: 'rows are locked in the order of the batch',
    module: statements,
    plant: reword('refreshSql', ['order by key', 'order by ord']),
    caughtBy: [locks.batchesCross],
  },
  {
    name: 'keys are inserted in the order of the batch',
    module: statements,
    plant: reword('acquireSql', ['order by r.key\n', 'order by r.ord\n']),
    caughtBy: [locks.insertsCross],
  },
  {
    name: 'grants are matched by key alone',
    module: statements,
    plant: reword('acquireSql', [
      'left join g on g.key = r.key and r.nth = 1',
      'left join g on g.key = r.key',
    ]),
    caughtBy: [
      contract('a key named twice in one batch of acquires is granted at most once, and nobody fails'),
      locks.aKeyNamedTwiceFailsNobody,
    ],
  },
  {
    name: 'a released token may acquire again',
    module: statements,
    plant: reword('acquireSql', ['and l.released_token is distinct from r.token', '']),
    caughtBy: [contract('the token that was released is spent: an acquire that comes late is not granted')],
  },
  {
    name: 'who waits is noted in a table of its own',
    module: statements,
    plant: (original) => ({
      ...reword('acquireSql', [
        `update "leasehold_leases" l set waiting_until = greatest(l.waiting_until, clock_timestamp() + w.waiting * 1.5)
    from w
   where (l.namespace, l.key) = (w.namespace, w.key)
  returning l.key`,
        `insert into leasehold_waiters as p (namespace, key, until)
  select w.namespace, w.key, clock_timestamp() + w.waiting from w
  on conflict (namespace, key) do update set until = excluded.until
  returning p.key`,
      ])(original),
      ...reword('releaseSql', [
        'l.waiting_until > clock_timestamp() as awaited',
        `exists (select from leasehold_waiters p where p.namespace = $1 and p.key = r.key) as awaited`,
      ])(original),
    }),
    prepare: ({ database }) =>
      database.sql(
        'create table leasehold_waiters (namespace text, key text, until timestamptz, primary key (namespace, key))',
      ),
    caughtBy: [locks.noWaiterIsMissed],
  },
  {
    name: 'times are those of the beginning of the transaction',
    module: statements,
    plant: reword('refreshSql', ['clock_timestamp()', 'now()']),
    caughtBy: [locks.waitingTakesTime],
  },
  {
    name: 'a lapsed row is taken over with the lock of an ordinary update',
    module: statements,
    plant: reword('acquireSql', ['         for update ', '         for no key update ']),
    caughtBy: [locks.aGuardIsNotOvertaken],
  },
  {
    name: 'a row is renewed with the lock of a deletion',
    module: statements,
    plant: reword('refreshSql', ['for no key update', 'for update']),
    caughtBy: [locks.aGuardDoesNotStarveItsHolder],
  },
  {
    name: 'a free row expired at minus infinity',
    module: statements,
    plant: reword('releaseSql', ['least(l.expires_at, clock_timestamp())', `'-infinity'`]),
    caughtBy: [contract('a purge leaves young records: what was released lately is still remembered')],
  },
  {
    name: 'rows are found by a join, whose order is the plan’s choice',
    module: statements,
    plant: () => ({ refreshSql: joinedRefreshSql }),
    caughtBy: [tables.plansDoNotScan],
  },
  {
    name: 'an index finds the leases that have expired',
    module: 'postgres/schema.sql',
    plant: ({ createTablesSql }) => ({
      createTablesSql: (names: TableNames) =>
        (createTablesSql as (names: TableNames) => string)(names).replace(
          'end $leasehold$',
          `create index on ${names.leases} (expires_at);\nend $leasehold$`,
        ),
    }),
    caughtBy: [tables.renewalsLeaveTheIndexesAlone],
  },
  {
    name: 'a serialization failure is taken for an unknown outcome',
    module: 'postgres/faults',
    plant: mistaking(({ cause }) => (cause as { code?: string }).code === '40001', 'unknown'),
    caughtBy: [locks.aSerializationFailureIsARetry],
  },
  {
    name: 'a call that got no connection is taken for one that was sent',
    module: 'postgres/faults',
    plant: mistaking(({ kind }) => kind === 'not-sent', 'unknown'),
    caughtBy: [tables.aTakenPoolSendsNothing],
  },
]
