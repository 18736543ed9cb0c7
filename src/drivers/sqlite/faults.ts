import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DriverFault } from '../../core/errors.ts'
import type { FailedAnswer } from '../../driver/driver.ts'

/** Which database is concerned: a file's path, or null for one that the user opened or that is in memory. */
export type FilePath = string | null

/** Any error of a SQLite library, as what it means for the call: never applied, since the transaction is rolled back. */
export function toFault(error: unknown, path: FilePath): DriverFault {
  if (error instanceof DriverFault) return error
  const text = messageOf(error)
  const fault = (kind: 'retry' | 'not-sent' | 'bad-item' | 'unusable', message: string) =>
    new DriverFault(kind, message, { cause: error })
  switch (resultCode(error)) {
    case 'BUSY':
    case 'LOCKED':
      return fault('retry', 'Another process or connection is writing to the SQLite file this instant.')
    case 'SCHEMA':
    case 'INTERRUPT':
    case 'ABORT':
      return fault('retry', `SQLite gave the statement up: ${text}.`)
    case 'FULL':
      return fault(
        'not-sent',
        `SQLite could not write: ${text}. Free some space on the disk (or raise max_page_count).`,
      )
    case 'IOERR':
    case 'NOMEM':
    case 'PROTOCOL':
      return fault('not-sent', `SQLite could not reach its file: ${text}.`)
    case 'READONLY':
      return fault('unusable', `SQLite may not write${at(path)}: ${text}. ${rightsAdvice}`)
    case 'CANTOPEN':
      return cannotOpen(error, path)
    case 'CORRUPT':
    case 'NOTADB':
      return fault(
        'unusable',
        `What is${at(path)} is not an intact SQLite database: ${text}. Give another path, or restore the file.`,
      )
    case 'AUTH':
    case 'PERM':
      return fault('unusable', `SQLite was told to refuse this: ${text}.`)
    case 'CONSTRAINT':
    case 'MISMATCH':
    case 'TOOBIG':
    case 'RANGE':
      return fault('bad-item', `SQLite refused a value: ${text}.`)
    case 'ERROR':
      // The user's own transaction on a borrowed connection, still open.
      if (/(within|inside) a transaction/.test(text)) {
        return fault(
          'retry',
          'The borrowed SQLite connection is in a transaction of its owner. Keep those short.',
        )
      }
      return fault('unusable', `SQLite cannot run a statement of this driver: ${text}.`)
    default:
      return isClosed(error)
        ? fault(
            'unusable',
            'The borrowed SQLite connection was closed. Close it after Leasehold, not before.',
          )
        : fault('bad-item', `The SQLite library refused a value: ${text}.`)
  }
}

/** An error while the file is being opened. */
export function toOpenFault(error: unknown, path: string): DriverFault {
  if (error instanceof DriverFault) return error
  const code = resultCode(error)
  if (code === 'CANTOPEN' || messageOf(error).includes('directory does not exist'))
    return cannotOpen(error, path)
  if (code !== null) return toFault(error, path)
  return new DriverFault(
    'unusable',
    `The SQLite library could not be loaded: ${messageOf(error)}. Install it again for this Node.js (npm rebuild better-sqlite3).`,
    { cause: error },
  )
}

/** The answer of COMMIT is all that tells; if it failed for other reasons than a lock or lack of space, who knows. */
export function toCommitFault(error: unknown, path: FilePath): DriverFault {
  const fault = toFault(error, path)
  if (['BUSY', 'FULL', 'READONLY', 'CONSTRAINT'].includes(resultCode(error) ?? '')) return fault
  return new DriverFault('unknown', `SQLite did not confirm a commit: ${messageOf(error)}.`, { cause: error })
}

/**
 * Runs one item of a batch. What is wrong with it alone (a value that SQLite refuses, a row that another program spoilt)
 * becomes its answer; what concerns the whole transaction is thrown.
 */
export function orFailed<Answer>(item: () => Answer): Answer | FailedAnswer {
  try {
    return item()
  } catch (error) {
    const fault = toFault(error, null)
    if (error !== fault && fault.kind !== 'bad-item') throw error
    return { outcome: 'failed', error: fault }
  }
}

/** A table or column is not there: dropped, never created, or of another release. */
export function isSchemaMissing(error: unknown): boolean {
  return resultCode(error) === 'ERROR' && /no such (table|column)|has no column/.test(messageOf(error))
}

const rightsAdvice =
  'Its user needs write access to the file and to its directory: SQLite keeps the -wal and -shm files beside it.'

function cannotOpen(error: unknown, path: FilePath): DriverFault {
  if (path !== null && areFilesExhausted(dirname(path))) {
    const message = `SQLite cannot open the database${at(path)}: too many files are open.`
    return new DriverFault('not-sent', message, { cause: error })
  }
  const advice = path === null ? rightsAdvice : openAdvice(path)
  return new DriverFault('unusable', `SQLite cannot open the database${at(path)}. ${advice}`, {
    cause: error,
  })
}

/** SQLite says no more than "unable to open", and this reason for it passes. */
function areFilesExhausted(directory: string): boolean {
  try {
    closeSync(openSync(directory, 'r'))
    return false
  } catch (error) {
    return ['EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')
  }
}

function openAdvice(path: string): string {
  const directory = statSync(dirname(path), { throwIfNoEntry: false })
  if (directory === undefined || !directory.isDirectory())
    return `Create the directory ${dirname(path)} first.`
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    return 'It is a directory: give the path of a file.'
  return rightsAdvice
}

function at(path: FilePath): string {
  return path === null ? '' : ` at ${path}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const primaryCodes: Readonly<Record<number, string>> = {
  1: 'ERROR',
  3: 'PERM',
  4: 'ABORT',
  5: 'BUSY',
  6: 'LOCKED',
  7: 'NOMEM',
  8: 'READONLY',
  9: 'INTERRUPT',
  10: 'IOERR',
  11: 'CORRUPT',
  13: 'FULL',
  14: 'CANTOPEN',
  15: 'PROTOCOL',
  17: 'SCHEMA',
  18: 'TOOBIG',
  19: 'CONSTRAINT',
  20: 'MISMATCH',
  23: 'AUTH',
  25: 'RANGE',
  26: 'NOTADB',
}

/**
 * SQLite's primary result code, or null for an error of the library around it. better-sqlite3 names the extended code
 * (`SQLITE_BUSY_SNAPSHOT`); `node:sqlite` gives its number, whose low byte is the primary one.
 */
function resultCode(error: unknown): string | null {
  const { code, errcode } = Object(error) as { readonly code?: unknown; readonly errcode?: unknown }
  if (typeof errcode === 'number') return primaryCodes[errcode & 0xff] ?? 'ERROR'
  if (typeof code === 'string' && code.startsWith('SQLITE_')) return code.split('_')[1] ?? 'ERROR'
  return null
}

function isClosed(error: unknown): boolean {
  return /is not open|has been finalized/.test(messageOf(error))
}
