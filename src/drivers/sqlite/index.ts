import { resolve } from 'node:path'
import { DriverFault, InvalidOptionError, requireOption } from '../../core/errors.ts'
import { holds, readOptions } from '../../core/read-options.ts'
import type { Driver } from '../../driver/driver.ts'
import { loadSqliteLibrary } from './clients.ts'
import type { SqliteDatabase } from './clients.ts'
import { SqliteConnection } from './connection.ts'
import { sqliteLocks } from './locks.ts'
import { isInMemory } from './opened.ts'
import type { SqliteSource } from './opened.ts'
import { schemaSql, sqliteTables } from './schema.sql.ts'
import type { SqliteTables } from './schema.sql.ts'
import { sqliteStatements } from './statements.ts'
import { sqliteTasks } from './tasks.ts'

export type { SqliteDatabase, SqliteStatement, SqliteValue } from './clients.ts'

export interface SqliteTableOptions {
  /**
   * What the names of the tables begin with: letters, digits and underscores, at most 30. Services with different
   * prefixes see nothing of each other. Default is `'leasehold_'`.
   */
  readonly tablePrefix?: string | undefined
}

export interface SqliteCommonOptions extends SqliteTableOptions {
  /**
   * Whether missing tables are created at the first call. Turn it off where a migration tool owns the schema, and run
   * the text of {@link sqliteSchema} with it. Default is `true`.
   */
  readonly createTables?: boolean | undefined
}

export interface SqlitePathOptions extends SqliteCommonOptions {
  /**
   * The file, relative to the working directory; it is created, its directory is not. All processes that share it run
   * on one host, and the file lies on a local disk. `':memory:'` is a store for this driver alone. If your application
   * opens the same file by itself, give a `database` instead, made with the library that the application uses: two
   * libraries on one file in one process undo each other's file locks.
   */
  readonly path: string
}

export interface SqliteDatabaseOptions extends SqliteCommonOptions {
  /**
   * A database that you opened, of better-sqlite3 or `node:sqlite`. It is never closed here, and its settings are put
   * back after each call. Transactions that you leave open on it hold up every lease: make a connection just for this.
   */
  readonly database: SqliteDatabase
}

export type SqliteDriverOptions = SqlitePathOptions | SqliteDatabaseOptions

/**
 * The SQLite driver: a store in one file, shared by the processes of one host.
 *
 * With a `path` it opens the file at the first call, with `node:sqlite` where Node.js has it (22.13) and else with
 * better-sqlite3, and closes it with its last session. No call ever waits for another process: a locked file is a
 * fault of kind `retry`.
 *
 * @throws InvalidOptionError for options that cannot be used
 * @throws DriverMissingError for a `path`, when no SQLite library is installed
 *
 * @example
 * const locks = new LockService({ driver: sqliteDriver({ path: './locks.db' }) })
 */
export function sqliteDriver(options: SqliteDriverOptions): Driver {
  const { source, tables, createTables } = resolveSqliteDriverOptions(options)
  const connection = new SqliteConnection(source, tables, createTables)
  const statements = sqliteStatements(tables)
  const isAlone = source.kind === 'path' && isInMemory(source.path)
  let sessions = 0
  return {
    name: 'sqlite',
    // A batch is one stretch of synchronous work: 100 items keep the event loop for 1 ms, or 4 in a table of 100,000.
    abilities: {
      push: false,
      clock: 'host',
      reach: isAlone ? 'process' : 'host',
      minTtlMs: 1,
      maxBatch: 100,
    },
    open(namespace) {
      let isOpen = true
      sessions += 1
      const use = (): SqliteConnection => {
        if (isOpen) return connection
        throw new DriverFault('not-sent', 'This session was closed. Open another one.')
      }
      return {
        locks: sqliteLocks(use, statements, namespace),
        tasks: sqliteTasks(use, statements, namespace),
        async close() {
          if (!isOpen) return
          isOpen = false
          sessions -= 1
          if (sessions === 0) connection.close()
        },
      }
    },
  }
}

/**
 * The SQL text that creates what the driver needs, for a migration tool. Every statement can be run again.
 *
 * @throws InvalidOptionError for a `tablePrefix` that makes no valid names
 */
export function sqliteSchema(options: SqliteTableOptions = {}): string {
  const { tablePrefix = defaultPrefix } = readOptions('sqliteSchema', options, ['tablePrefix'])
  return schemaSql(sqliteTables(tablePrefix))
}

const defaultPrefix = 'leasehold_'

interface ResolvedSqliteDriverOptions {
  readonly source: SqliteSource
  readonly tables: SqliteTables
  readonly createTables: boolean
}

type AnyOptions = Partial<SqlitePathOptions & SqliteDatabaseOptions>

function resolveSqliteDriverOptions(options: SqliteDriverOptions): ResolvedSqliteDriverOptions {
  const {
    tablePrefix = defaultPrefix,
    createTables = true,
    ...where
  } = readOptions('sqliteDriver', options as AnyOptions, ['path', 'database', 'tablePrefix', 'createTables'])
  requireOption(typeof createTables === 'boolean', 'createTables', 'true or false')
  return { source: resolveSource(where), tables: sqliteTables(tablePrefix), createTables }
}

function resolveSource({ path, database }: Pick<AnyOptions, 'path' | 'database'>): SqliteSource {
  if ((path === undefined) === (database === undefined)) {
    throw new InvalidOptionError(
      'path',
      'Give either the path of a SQLite file, or a database that you opened.',
    )
  }
  if (database !== undefined) {
    const isUsable = holds(() => isDatabase(database))
    requireOption(isUsable, 'database', 'a Database of better-sqlite3 or a DatabaseSync of node:sqlite')
    return { kind: 'borrowed', database }
  }
  const isPlain = typeof path === 'string' && path !== '' && !path.includes('\0') && !path.startsWith('file:')
  requireOption(isPlain, 'path', "the plain path of a file, not a URL, or ':memory:'")
  return { kind: 'path', path: isInMemory(path) ? path : resolve(path), library: loadSqliteLibrary() }
}

function isDatabase(value: SqliteDatabase): boolean {
  const { exec, prepare } = Object(value) as Partial<SqliteDatabase>
  return typeof exec === 'function' && typeof prepare === 'function'
}
