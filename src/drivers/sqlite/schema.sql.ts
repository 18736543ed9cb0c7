import { requireOption } from '../../core/errors.ts'
import { quoteIdentifier } from '../../sql/identifier.ts'

/** Goes up with every change of the tables. Kept in the meta table, compared when a file is opened. */
export const schemaVersion = 1

/** The tables' names, quoted for use in SQL. */
export interface SqliteTables {
  readonly meta: string
  readonly namespace: string
  readonly lease: string
  readonly task: string
  readonly run: string
  readonly leaseIndex: string
  readonly runIndex: string
}

/** @throws InvalidOptionError for a prefix that makes no valid names */
export function sqliteTables(prefix: string): SqliteTables {
  requireOption(typeof prefix === 'string', 'tablePrefix', 'a string')
  const name = (suffix: string) => quoteIdentifier('tablePrefix', `${prefix}${suffix}`)
  return {
    meta: name('meta'),
    namespace: name('namespace'),
    lease: name('lease'),
    task: name('task'),
    run: name('run'),
    leaseIndex: name('lease_end'),
    runIndex: name('run_end'),
  }
}

/**
 * Creates what is missing. Input: none. Output: none. Atomic because the driver runs it in one IMMEDIATE transaction:
 * of two processes that create at once, the second waits its turn and finds everything there.
 *
 * Times are milliseconds since the epoch on the host's clock. Keys compare byte by byte (BINARY is the default).
 */
export function schemaSql(tables: SqliteTables): string {
  return `
create table if not exists ${tables.meta} (
  name  text not null primary key,
  value text not null
) strict, without rowid;

create table if not exists ${tables.namespace} (
  namespace text    not null primary key,
  fence     integer not null,  -- the greatest fence issued; later ones are greater, whatever becomes of the records
  version   integer not null   -- the control version
) strict, without rowid;

create table if not exists ${tables.lease} (
  namespace     text    not null,
  key           text    not null,
  token         text,              -- null once released
  fence         integer not null,
  holder        text    not null,
  acquired_at   integer not null,
  expires_at    integer not null,  -- in a released record: when the lease ended
  waiting_until integer not null,
  spent         text,              -- the token that was released last
  revoked       integer not null,
  primary key (namespace, key)
) strict, without rowid;

create index if not exists ${tables.leaseIndex} on ${tables.lease} (namespace, expires_at);

create table if not exists ${tables.task} (
  namespace      text    not null,
  task           text    not null,
  mark           integer not null,  -- the last decided slot
  fingerprint    text    not null,
  former         text    not null,  -- JSON: the fingerprints before
  generation     integer not null,
  definition     text    not null,
  registered_at  integer not null,
  attended_until integer not null,
  paused_by      text,
  run_slot       integer,           -- run_*: the run under way, or lapsed and not yet dealt with; all null without one
  run_attempt    integer,
  run_token      text,
  run_fence      integer,
  run_holder     text,
  run_expires_at integer,
  run_stop       text,
  orders         text    not null,  -- the manual runs that were asked for
  requests       text    not null,  -- JSON: the control requests that were applied
  primary key (namespace, task)
) strict, without rowid;

create table if not exists ${tables.run} (
  namespace  text    not null,
  task       text    not null,
  slot       integer not null,
  attempt    integer not null,  -- 0: a slot that did not run
  state      text    not null,
  reason     text,
  after      integer not null,  -- the mark before this row moved it
  gap        text    not null,  -- why the slots between after and slot did not run
  fence      integer,
  holder     text,
  started_at integer not null,
  ended_at   integer,           -- of a lost run when it was found
  lapsed_at  integer,           -- of a lost run when its lease ended
  error      text,
  late       text,
  primary key (namespace, task, slot, attempt)
) strict, without rowid;

create index if not exists ${tables.runIndex} on ${tables.run} (namespace, ended_at) where ended_at is not null;

insert into ${tables.meta} (name, value) values ('schema', '${schemaVersion}') on conflict (name) do nothing;
`
}
