import { DriverFault } from '../../core/errors.ts'
import type { DriverFaultKind } from '../../core/errors.ts'

/** What a failed call means, and what the user can do about it. */
interface Verdict {
  readonly kind: DriverFaultKind
  readonly advice?: string | undefined
}

/** Table, schema or sequence of the statement is not there. */
const undefinedTable = '42P01'

export function isMissingTable(error: unknown): boolean {
  return codeOf(error) === undefinedTable
}

/** Tells by SQLSTATE, or by the client's own code or words, whether a failed call can have been applied. */
export function toFault(error: unknown): DriverFault {
  if (error instanceof DriverFault) return error
  const reason = error instanceof Error ? error.message || error.name : String(error)
  const { kind, advice } = verdictOn(error, reason)
  return new DriverFault(kind, advice === undefined ? reason : `${reason}. ${advice}`, { cause: error })
}

function verdictOn(error: unknown, reason: string): Verdict {
  const code = codeOf(error)
  if (code !== undefined) {
    if (isEndedBeforeCommit(error, code)) return { kind: 'retry' }
    const verdict = bySqlState[code] ?? byClass[code.slice(0, 2)] ?? byClientCode[code]
    if (verdict !== undefined) return verdict
    // The server has refused the statement; FATAL and PANIC end the connection and can come after a commit.
    if (/^[0-9A-Z]{5}$/.test(code) && severityOf(error) === 'ERROR') return { kind: 'unusable' }
  }
  if (isConnecting(error)) return { kind: 'not-sent' }
  return { kind: neverSent.some((words) => reason.includes(words)) ? 'not-sent' : 'unknown' }
}

const bySqlState: Readonly<Record<string, Verdict>> = {
  '40001': { kind: 'retry' },
  '40P01': { kind: 'retry' },
  '40003': { kind: 'unknown' },
  '55P03': { kind: 'retry' },
  // A statement timeout: rolled back, but trying at once meets the same load.
  '57014': { kind: 'not-sent' },
  '57P03': { kind: 'not-sent' },
  '08001': { kind: 'not-sent' },
  '08004': { kind: 'not-sent' },
  '42501': {
    kind: 'unusable',
    advice:
      'The role needs select, insert, update and delete on the tables of Leasehold, and create on their schema if Leasehold is to make them',
  },
  '25006': {
    kind: 'unusable',
    advice: 'Leases need a primary that takes writes: this is a standby or a read-only session',
  },
  '25P02': {
    kind: 'unusable',
    advice: 'The client is inside a transaction of yours. Give Leasehold a pool, or a client of its own',
  },
  '26000': { kind: 'unusable', advice: 'Set namedStatements to false: a pooler shares connections out anew' },
  '42P05': { kind: 'unusable', advice: 'Set namedStatements to false: a pooler shares connections out anew' },
  '3F000': { kind: 'unusable', advice: 'Create the schema, or set the schema option to one that exists' },
  [undefinedTable]: { kind: 'unusable' },
  '42703': { kind: 'unusable', advice: 'The tables are of another version of Leasehold, or not its own' },
}

const byClass: Readonly<Record<string, Verdict>> = {
  // Something in one of the items cannot be stored, or what another program wrote into its row.
  '22': { kind: 'bad-item', advice: 'If its row holds what Leasehold did not write, delete the row' },
  '54': { kind: 'bad-item' },
  // No room: connections, memory, disk.
  '53': { kind: 'not-sent' },
  // The connection broke or was ended, before or after the commit.
  '08': { kind: 'unknown' },
  '57': { kind: 'unknown' },
  // Wrong password, no such user, no such database.
  '28': { kind: 'unusable' },
  '3D': { kind: 'unusable' },
}

/**
 * An administrator or an idle timeout ended the connection, and PostgreSQL itself says so. It says that only of a
 * statement it has not committed: after a commit the connection breaks without a word. A pooler's own message of this
 * code does not name the place in the source, and tells nothing.
 */
function isEndedBeforeCommit(error: unknown, code: string): boolean {
  return (code === '57P01' || code === '57P05') && propertyOf(error, 'routine') === 'ProcessInterrupts'
}

/** Codes of postgres.js. */
const byClientCode: Readonly<Record<string, Verdict>> = {
  CONNECT_TIMEOUT: { kind: 'not-sent' },
  CONNECTION_ENDED: { kind: 'not-sent' },
}

/** What node-postgres, which has no codes of its own, says when it sent nothing. */
const neverSent = [
  'timeout exceeded when trying to connect',
  'Connection terminated due to connection timeout',
  'timeout expired',
  'Cannot use a pool after calling end on the pool',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'The server does not support SSL connections',
  'SASL: ',
]

/** The error comes from setting the connection up. */
function isConnecting(error: unknown): boolean {
  const syscall = propertyOf(error, 'syscall')
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // A name with several addresses, each of them refused; or a certificate that is not trusted.
  return /^ECONNREFUSED$|CERT|^UNABLE_TO_/.test(codeOf(error) ?? '')
}

function codeOf(error: unknown): string | undefined {
  const code = propertyOf(error, 'code')
  return typeof code === 'string' ? code : undefined
}

function severityOf(error: unknown): unknown {
  return propertyOf(error, 'severity')
}

function propertyOf(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined
}
