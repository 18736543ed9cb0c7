import { quoteIdentifier } from '../../sql/identifier.ts'

/** The version of the tables below; it goes up when they change. */
export const schemaVersion = 1

/** Where the tables are and what they are called, each name quoted and ready for use in SQL. */
export interface TableNames {
  /** Null: the first schema of the connection's search path. */
  readonly schema: string | null
  readonly leases: string
  readonly tasks: string
  readonly runs: string
  readonly namespaces: string
}

/** @throws InvalidOptionError for a schema or prefix that is no plain identifier */
export function tableNames(schema: string | null, prefix: string): TableNames {
  const quotedSchema = schema === null ? null : quoteIdentifier('schema', schema)
  if (prefix !== '') quoteIdentifier('tablePrefix', prefix)
  const table = (name: string) => `${quotedSchema === null ? '' : `${quotedSchema}.`}"${prefix}${name}"`
  return {
    schema: quotedSchema,
    leases: table('leases'),
    tasks: table('tasks'),
    runs: table('runs'),
    namespaces: table('namespaces'),
  }
}

/**
 * The statements that make the tables.
 *
 * - Keys and names sort byte by byte (`collate "C"`), whatever the database's collation, and so do row locks.
 * - No index on a column that a renewal changes, and room left in each page: renewals are HOT updates.
 * - In `namespaces`, the row of the empty namespace carries the version of the tables.
 */
export function schemaStatements(tables: TableNames): readonly string[] {
  return [...tableStatements(tables).values(), versionStatement(tables)]
}

/** By the name of the table that each makes. */
function tableStatements({ leases, tasks, runs, namespaces }: TableNames): ReadonlyMap<string, string> {
  return new Map([
    [
      leases,
      `create table ${leases} (
  namespace text collate "C" not null,
  key text collate "C" not null,
  token text collate "C",
  released_token text collate "C",
  fence bigint not null,
  holder text not null,
  acquired_at timestamptz not null,
  expires_at timestamptz not null,
  waiting_until timestamptz not null default 'epoch',
  revoked boolean not null default false,
  primary key (namespace, key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)`,
    ],

    [
      tasks,
      `create table ${tasks} (
  namespace text collate "C" not null,
  task text collate "C" not null,
  mark bigint not null,
  fingerprint text collate "C" not null,
  former_fingerprints text[] not null default '{}',
  generation integer not null default 1,
  definition text not null,
  registered_at timestamptz not null,
  attended_until timestamptz not null,
  paused_by text,
  fence bigint not null default 0,
  run_slot bigint,
  run_attempt integer,
  run_token text collate "C",
  run_holder text,
  run_expires_at timestamptz,
  run_stop text,
  orders text not null default '',
  control_requests text[] not null default '{}',
  primary key (namespace, task)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)`,
    ],

    [
      runs,
      `create table ${runs} (
  namespace text collate "C" not null,
  task text collate "C" not null,
  slot bigint not null,
  attempt integer not null,
  state text not null,
  reason text,
  follows bigint not null,
  gap text not null,
  fence bigint,
  holder text,
  started_at timestamptz not null,
  ended_at timestamptz,
  lapsed_at timestamptz,
  error text,
  late text,
  primary key (namespace, task, slot, attempt)
) with (fillfactor = 80)`,
    ],

    [
      namespaces,
      `create table ${namespaces} (
  namespace text collate "C" primary key,
  version bigint not null
)`,
    ],
  ])
}

function versionStatement({ namespaces }: TableNames): string {
  return `insert into ${namespaces} (namespace, version) values ('', ${schemaVersion}) on conflict do nothing`
}

/**
 * Makes the tables that are not there. One statement, so that every protocol and pooler takes it, and atomic: the
 * advisory lock lets one process at a time look and create, the others find the tables and do nothing.
 */
export function createTablesSql(tables: TableNames): string {
  const { schema, namespaces } = tables
  return [
    'do $leasehold$ begin',
    `perform pg_advisory_xact_lock(hashtext('leasehold'), hashtext(${literal(namespaces)}));`,
    schema === null ? '' : unlessThere('to_regnamespace', schema, `create schema ${schema}`),
    ...[...tableStatements(tables)].map(([name, text]) => unlessThere('to_regclass', name, text)),
    `${versionStatement(tables)};`,
    'end $leasehold$',
  ].join('\n')
}

/** Input: none. Output: the version of the tables, 0 if they don't say. */
export function schemaVersionSql(tables: TableNames): string {
  return `select coalesce((select version from ${tables.namespaces} where namespace = ''), 0)::text as version`
}

function unlessThere(lookUp: string, name: string, text: string): string {
  return `if ${lookUp}(${literal(name)}) is null then\n${text};\nend if;`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
