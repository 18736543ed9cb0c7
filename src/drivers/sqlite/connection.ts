import type { PreparedDatabase } from './clients.ts'
import { isSchemaMissing, toCommitFault, toFault } from './faults.ts'
import { openSource } from './opened.ts'
import type { OpenedDatabase, SqliteSource } from './opened.ts'
import type { Durability } from './pragmas.ts'
import type { SqliteTables } from './schema.sql.ts'
import { createSchema, isSchemaReady, missingTables } from './schema.ts'

type Body<T> = (database: PreparedDatabase) => T
type Begin = 'begin' | 'begin immediate'

/**
 * One connection to a SQLite database, opened on first use, and its transactions. All is synchronous, so that calls
 * never interleave. Nothing waits for another process, since that would block the event loop and with it every loss
 * signal: a locked file is a fault of kind `retry`.
 */
export class SqliteConnection {
  readonly #source: SqliteSource
  readonly #tables: SqliteTables
  readonly #mayCreate: boolean
  #opened: OpenedDatabase | null = null

  constructor(source: SqliteSource, tables: SqliteTables, mayCreate: boolean) {
    this.#source = source
    this.#tables = tables
    this.#mayCreate = mayCreate
  }

  /**
   * Runs `body` on one snapshot of the database.
   *
   * @throws DriverFault
   */
  read<T>(body: Body<T>): T {
    return this.#run('begin', 'lease', body)
  }

  /**
   * Runs `body` as the only writer, and commits what it did unless it throws.
   *
   * @throws DriverFault
   */
  write<T>(durability: Durability, body: Body<T>): T {
    return this.#run('begin immediate', durability, body)
  }

  /** Closes what was opened here; the next call opens it again. Never throws. */
  close(): void {
    const opened = this.#opened
    this.#opened = null
    if (opened === null || this.#source.kind === 'borrowed') return
    try {
      opened.database.close()
    } catch {
      // It is of no use any more either way.
    }
  }

  #run<T>(begin: Begin, durability: Durability, body: Body<T>): T {
    const opened = this.#ready()
    try {
      return this.#transact(opened, begin, durability, body)
    } catch (error) {
      if (!isSchemaMissing(error)) throw toFault(error, this.#path)
    }
    // Somebody dropped a table while we run: what it held is lost, and its holders will be told so.
    this.#prepareTables(opened)
    try {
      return this.#transact(opened, begin, durability, body)
    } catch (error) {
      throw isSchemaMissing(error) ? missingTables(this.#tables, error) : toFault(error, this.#path)
    }
  }

  #ready(): OpenedDatabase {
    if (this.#opened?.hasMoved()) this.close()
    if (this.#opened !== null) return this.#opened
    const opened = openSource(this.#source)
    this.#opened = opened
    try {
      this.#prepareTables(opened)
    } catch (error) {
      this.close()
      throw error
    }
    return opened
  }

  /** Looks first: a process that starts while others write need not stand in line with them. */
  #prepareTables(opened: OpenedDatabase): void {
    try {
      const isReady = this.#transact(opened, 'begin', 'lease', (database) =>
        isSchemaReady(database, this.#tables),
      )
      if (isReady) return
      if (!this.#mayCreate) throw missingTables(this.#tables)
      this.#transact(opened, 'begin immediate', 'durable', (database) => createSchema(database, this.#tables))
    } catch (error) {
      throw toFault(error, this.#path)
    }
  }

  #transact<T>(opened: OpenedDatabase, begin: Begin, durability: Durability, body: Body<T>): T {
    const restore = opened.pragmas.set(durability)
    try {
      opened.database.exec(begin)
      return this.#finish(opened.database, body)
    } finally {
      restore()
    }
  }

  #finish<T>(database: PreparedDatabase, body: Body<T>): T {
    let isCommitting = false
    try {
      const result = body(database)
      isCommitting = true
      database.exec('commit')
      return result
    } catch (error) {
      rollBack(database)
      throw isCommitting ? toCommitFault(error, this.#path) : error
    }
  }

  get #path(): string | null {
    return this.#source.kind === 'path' ? this.#source.path : null
  }
}

function rollBack(database: PreparedDatabase): void {
  try {
    database.exec('rollback')
  } catch {
    // SQLite ends the transaction by itself after some errors.
  }
}
