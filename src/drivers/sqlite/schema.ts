import { DriverFault } from '../../core/errors.ts'
import type { PreparedDatabase } from './clients.ts'
import { isSchemaMissing } from './faults.ts'
import { schemaSql, schemaVersion } from './schema.sql.ts'
import type { SqliteTables } from './schema.sql.ts'

/**
 * Whether all tables are there, in this release's version.
 *
 * @throws DriverFault `unusable`, saying what to do, if they are of another version
 */
export function isSchemaReady(database: PreparedDatabase, tables: SqliteTables): boolean {
  const found = findVersion(database, tables)
  if (found === null) return false
  refuseOtherVersions(found)
  return areAllThere(database, tables)
}

/** Creates what is missing; to be called in an IMMEDIATE transaction. Two processes at once both succeed. */
export function createSchema(database: PreparedDatabase, tables: SqliteTables): void {
  // Between the look and the lock another release may have come.
  if (!isSchemaReady(database, tables)) database.exec(schemaSql(tables))
}

export function missingTables(tables: SqliteTables, cause?: unknown): DriverFault {
  return new DriverFault(
    'unusable',
    `The SQLite database lacks the tables of Leasehold (${tables.lease} and its siblings). Run the text of sqliteSchema() on it, or leave createTables on.`,
    { cause },
  )
}

function findVersion(database: PreparedDatabase, tables: SqliteTables): string | null {
  try {
    const row = database.get(`select value from ${tables.meta} where name = 'schema'`)
    return row === null ? null : String(row['value'])
  } catch (error) {
    if (isSchemaMissing(error)) return null
    throw error
  }
}

function refuseOtherVersions(found: string): void {
  if (found === String(schemaVersion)) return
  const advice =
    Number(found) > schemaVersion
      ? 'A newer release of Leasehold has upgraded it: bring this service to that release'
      : 'It is from another release of Leasehold: upgrade its tables as the release notes say'
  throw new DriverFault(
    'unusable',
    `The tables in this SQLite database are of version ${found}, and this release uses version ${schemaVersion}. ${advice}, or use another file or tablePrefix.`,
  )
}

function areAllThere(database: PreparedDatabase, tables: SqliteTables): boolean {
  const names = [tables.namespace, tables.lease, tables.task, tables.run].map((name) =>
    name.replaceAll('"', ''),
  )
  return names.every(
    (name) => database.get('select 1 from sqlite_schema where name = ? collate nocase', name) !== null,
  )
}
