import { createRequire } from 'node:module'
import { join } from 'node:path'
import { DriverMissingError } from '../../core/errors.ts'

/**
 * What the driver uses of a SQLite library: a `Database` of better-sqlite3 and a `DatabaseSync` of `node:sqlite` both
 * have it. Calls are synchronous.
 */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): unknown
}

/** A prepared statement. Integers may come as bigint, if the database was told so. */
export interface SqliteStatement {
  run(...parameters: SqliteValue[]): unknown
  get(...parameters: SqliteValue[]): unknown
  all(...parameters: SqliteValue[]): unknown[]
}

export type SqliteValue = string | number | null

/** A row by column names. */
export type SqliteRow = Readonly<Record<string, unknown>>

/** Opens files with one of the two libraries. */
export interface SqliteLibrary {
  readonly name: 'node:sqlite' | 'better-sqlite3'
  open(path: string): SqliteDatabase
}

/**
 * The library to open files with: the one that Node.js brings from 22.13 on, else better-sqlite3, which is looked for
 * from this package and then from the working directory.
 *
 * @throws DriverMissingError when there is neither
 */
export function loadSqliteLibrary(): SqliteLibrary {
  const own = process.getBuiltinModule('node:sqlite') as NodeSqlite | undefined
  if (own !== undefined) return { name: 'node:sqlite', open: (path) => new own.DatabaseSync(path) }
  const Database = requireBetterSqlite3()
  // Its own default is to block the event loop for up to 5 s while another process writes.
  return { name: 'better-sqlite3', open: (path) => new Database(path, { timeout: 0 }) }
}

/** A database whose statements are prepared once and answer rows as objects, whatever its owner's settings are. */
export class PreparedDatabase {
  readonly #database: SqliteDatabase
  readonly #statements = new Map<string, SqliteStatement>()

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  exec(sql: string): void {
    this.#database.exec(sql)
  }

  run(sql: string, ...parameters: SqliteValue[]): number {
    const result = this.#statement(sql).run(...parameters) as { readonly changes?: unknown }
    return Number(result.changes)
  }

  get(sql: string, ...parameters: SqliteValue[]): SqliteRow | null {
    return (this.#statement(sql).get(...parameters) as SqliteRow | undefined) ?? null
  }

  all(sql: string, ...parameters: SqliteValue[]): readonly SqliteRow[] {
    return this.#statement(sql).all(...parameters) as SqliteRow[]
  }

  /** Closes the database itself: only for one that we opened. */
  close(): void {
    this.#statements.clear()
    this.#database.close()
  }

  #statement(sql: string): SqliteStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql) as SqliteStatement & RowFormat
    statement.setReturnArrays?.(false)
    this.#statements.set(sql, statement)
    return statement
  }
}

/** `node:sqlite`: a database may be set to answer arrays. */
interface RowFormat {
  readonly setReturnArrays?: ((enabled: boolean) => void) | undefined
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase
}

type BetterSqlite3 = new (path: string, options: { readonly timeout: number }) => SqliteDatabase

function requireBetterSqlite3(): BetterSqlite3 {
  let cause: unknown
  for (const from of [import.meta.url, join(process.cwd(), 'package.json')]) {
    try {
      return createRequire(from)('better-sqlite3') as BetterSqlite3
    } catch (error) {
      cause = error
    }
  }
  throw new DriverMissingError(
    'No SQLite library was found. Install one (npm install better-sqlite3), or use Node.js 22.13 or later, which brings its own.',
    { cause },
  )
}
