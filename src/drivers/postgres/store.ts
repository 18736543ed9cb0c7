import { createHash } from 'node:crypto'
import { DriverFault } from '../../core/errors.ts'
import type { CallOptions } from '../../driver/driver.ts'
import type { Link, Statement } from './clients.ts'
import { isMissingTable, toFault } from './faults.ts'
import { createTablesSql, schemaVersion, schemaVersionSql } from './schema.sql.ts'
import type { TableNames } from './schema.sql.ts'

/** One namespace, and the channel that its notices go over. */
export interface Scope {
  readonly namespace: string
  readonly channel: string
}

/** A statement whose text does not depend on how rows locked by others are treated. */
export function statement(text: string): Statement {
  return { text, name: `leasehold_${createHash('sha256').update(text).digest('hex').slice(0, 16)}` }
}

/** A statement in both its ways of treating rows locked by others. */
export function lockingStatement(
  textFor: (lockedRows: CallOptions['lockedRows']) => string,
): Readonly<Record<CallOptions['lockedRows'], Statement>> {
  return { skip: statement(textFor('skip')), wait: statement(textFor('wait')) }
}

/** The database as the driver's calls see it: one statement, one JSON answer, every error a `DriverFault`. */
export class PostgresStore {
  readonly tables: TableNames
  readonly #link: Link
  readonly #createTables: boolean
  #isReady = false
  /** A statement found one of them missing, though they were there when first looked for. */
  #areTablesGone = false
  #preparing: Promise<void> | undefined

  constructor(link: Link, tables: TableNames, createTables: boolean) {
    this.#link = link
    this.tables = tables
    this.#createTables = createTables
  }

  /**
   * Runs a statement that answers one JSON text, and parses it. The first call looks for the tables.
   *
   * @throws DriverFault
   */
  async ask<Answer>(sql: Statement, values: readonly string[], attempt: number): Promise<Answer> {
    if (!this.#isReady) await this.#prepare(attempt)
    const text = firstCell(await this.#run(sql, values))
    if (typeof text === 'string') return JSON.parse(text) as Answer
    throw new DriverFault('unusable', `The client answered ${typeof text} for a column of type text.`)
  }

  async #run(sql: Statement, values: readonly string[]): Promise<readonly unknown[]> {
    try {
      return await this.#link.run(sql, values)
    } catch (error) {
      if (!isMissingTable(error)) throw toFault(error)
      if (!this.#createTables) throw this.#tablesAreMissing(error)
      this.#isReady = false
      this.#areTablesGone = true
      // Somebody dropped them. Nothing was applied; the next try makes them again.
      throw new DriverFault('retry', 'The tables of Leasehold are gone and are made again.', { cause: error })
    }
  }

  /** One look for all calls of one turn. Later ones look for themselves: this one may hang, and they would with it. */
  #prepare(attempt: number): Promise<void> {
    if (this.#preparing !== undefined && attempt === 1) return this.#preparing
    const preparing = this.#findOrMakeTables()
    this.#preparing = preparing
    process.nextTick(() => {
      if (this.#preparing === preparing) this.#preparing = undefined
    })
    return preparing
  }

  async #findOrMakeTables(): Promise<void> {
    let version = this.#areTablesGone ? undefined : await this.#findVersion()
    if (version === undefined) {
      if (!this.#createTables) throw this.#tablesAreMissing(undefined)
      await this.#makeTables()
      version = await this.#findVersion()
    }
    if (version !== schemaVersion) {
      throw new DriverFault(
        'unusable',
        `The tables of Leasehold are of version ${version}, and this release works with version ${schemaVersion}. Use the release that made them, or another tablePrefix.`,
      )
    }
    this.#isReady = true
    this.#areTablesGone = false
  }

  async #makeTables(): Promise<void> {
    try {
      await this.#link.run(statement(createTablesSql(this.tables)), [])
    } catch (error) {
      throw toFault(error)
    }
  }

  /** The version of the tables, or undefined if they are not there. */
  async #findVersion(): Promise<number | undefined> {
    try {
      return Number(firstCell(await this.#link.run(statement(schemaVersionSql(this.tables)), [])))
    } catch (error) {
      if (isMissingTable(error)) return undefined
      throw toFault(error)
    }
  }

  #tablesAreMissing(cause: unknown): DriverFault {
    return new DriverFault(
      'unusable',
      `The table ${this.tables.namespaces} and its siblings do not exist, and createTables is false. Run the statements that postgresSchema() answers, with the same schema and tablePrefix.`,
      { cause },
    )
  }
}

/**
 * Whatever the client made of its name: a client may rename columns, and the answer has only one.
 *
 * @throws DriverFault if there is no row: a client that lost its connection may say so instead of failing
 */
function firstCell([row]: readonly unknown[]): unknown {
  if (row === undefined) throw new DriverFault('unknown', 'The client answered no row.')
  return typeof row === 'object' && row !== null ? Object.values(row)[0] : undefined
}
