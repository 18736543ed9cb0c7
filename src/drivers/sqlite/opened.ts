import { statSync } from 'node:fs'
import { DriverFault } from '../../core/errors.ts'
import { PreparedDatabase } from './clients.ts'
import type { SqliteDatabase, SqliteLibrary } from './clients.ts'
import { toFault, toOpenFault } from './faults.ts'
import { borrowedPragmas, ownPragmas } from './pragmas.ts'
import type { Pragmas } from './pragmas.ts'

/** Where the database comes from. */
export type SqliteSource =
  | { readonly kind: 'path'; readonly path: string; readonly library: SqliteLibrary }
  | { readonly kind: 'borrowed'; readonly database: SqliteDatabase }

/** A database ready for statements. */
export interface OpenedDatabase {
  readonly database: PreparedDatabase
  readonly pragmas: Pragmas
  /** Another file, or none, lies at the path by now: what is written here, no other process sees. */
  hasMoved(): boolean
}

/** @throws DriverFault */
export function openSource(source: SqliteSource): OpenedDatabase {
  return source.kind === 'path' ? openPath(source.path, source.library) : borrow(source.database)
}

/** True for a database without a file that others could open or delete. */
export function isInMemory(path: string): boolean {
  return path === ':memory:'
}

function openPath(path: string, library: SqliteLibrary): OpenedDatabase {
  const database = openFile(path, library)
  try {
    const pragmas = ownPragmas(database)
    if (isInMemory(path)) return { database, pragmas, hasMoved: () => false }
    const opened = identityOf(path)
    return { database, pragmas, hasMoved: () => identityOf(path) !== opened }
  } catch (error) {
    database.close()
    throw toFault(error, path)
  }
}

function openFile(path: string, library: SqliteLibrary): PreparedDatabase {
  try {
    return new PreparedDatabase(library.open(path))
  } catch (error) {
    throw toOpenFault(error, path)
  }
}

function borrow(borrowed: SqliteDatabase): OpenedDatabase {
  const database = new PreparedDatabase(borrowed)
  try {
    if (Number(database.get('select 1 as one')?.['one']) !== 1) throw notSynchronous()
    return { database, pragmas: borrowedPragmas(database), hasMoved: () => false }
  } catch (error) {
    throw toFault(error, null)
  }
}

/** The `sqlite3` package, for one, has all the methods, and answers through callbacks. */
function notSynchronous(): DriverFault {
  return new DriverFault(
    'unusable',
    'This database does not answer synchronously. Pass a Database of better-sqlite3 or a DatabaseSync of node:sqlite, or a path.',
  )
}

/** Device and inode: they tell whether a path still names the file that was opened. */
function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return 'none'
  }
}
