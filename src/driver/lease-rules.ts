import { DriverFault } from '../core/errors.ts'
import type {
  AcquireAnswer,
  AcquireRequest,
  LeaseRecord,
  RefreshAnswer,
  RefreshRequest,
  ReleaseAnswer,
  ReleaseRequest,
  RevokeAnswer,
  RevokeRequest,
} from './lock-driver.ts'

/*
 * The rules of LockDriver in plain TypeScript: record + request + moment -> answer + next record. No I/O and no clock.
 * The in-process and the SQLite driver run them inside their atomic step; the drivers of servers say the same in SQL
 * or Lua, and can be checked against these.
 */

/** The record of a plain key as a store keeps it. Times are the store's, whole milliseconds since the epoch. */
export interface LeaseRow {
  /** The token that the key was granted to last; null once it was released. */
  readonly token: string | null
  readonly fence: number
  readonly holder: string
  readonly acquiredAt: number
  /** When the lease ends. In a released record: when it ended. */
  readonly expiresAt: number
  /** Somebody waits for the key, or did until this moment. */
  readonly waitingUntil: number
  /** The token that was released last: neither granted again nor lost. */
  readonly spent: string | null
  /** An operator asked for the key back. */
  readonly revoked: boolean
}

/** When a rule is applied, as the store sees it. */
export interface StoreMoment {
  /** The store's clock, whole milliseconds since the epoch. */
  readonly now: number
  /** The greatest fence issued so far in the namespace; a new one is greater, whatever became of the records. */
  readonly floor: number
}

/** What a rule decides about one record. */
export interface LeaseStep<Answer> {
  readonly answer: Answer
  /** What the record becomes; null if it stays as it is. */
  readonly next: LeaseRow | null
  /** The key became free and somebody waits for it. */
  readonly wakes: boolean
}

export function acquireLease(
  row: LeaseRow | null,
  request: AcquireRequest,
  moment: StoreMoment,
): LeaseStep<AcquireAnswer> {
  const { now } = moment
  if (row !== null && row.spent === request.token) return unchanged({ outcome: 'spent' })
  if (row !== null && isHeld(row, now)) {
    // A revoked lease is not re-armed, even by its own token: the key would never come back.
    if (row.token === request.token && !row.revoked) return rearm(row, request, now)
    return refuse(row, request, now)
  }
  const next: LeaseRow = {
    token: request.token,
    fence: mintFence(row, moment),
    holder: request.holder,
    acquiredAt: now,
    expiresAt: momentAfter(now, request.ttlMs),
    waitingUntil: row?.waitingUntil ?? 0,
    spent: row?.spent ?? null,
    revoked: false,
  }
  return changed({ outcome: 'granted', fence: next.fence, remainingMs: next.expiresAt - now }, next)
}

export function refreshLease(
  row: LeaseRow | null,
  request: RefreshRequest,
  now: number,
): LeaseStep<RefreshAnswer> {
  if (row === null || row.token !== request.token || !isHeld(row, now)) {
    return unchanged({ outcome: 'lost', reason: 'gone' })
  }
  if (row.revoked) return unchanged({ outcome: 'lost', reason: 'revoked' })
  const expiresAt = Math.max(row.expiresAt, momentAfter(now, request.ttlMs))
  return changed({ outcome: 'held', remainingMs: expiresAt - now }, { ...row, expiresAt })
}

export function releaseLease(
  row: LeaseRow | null,
  request: ReleaseRequest,
  now: number,
): LeaseStep<ReleaseAnswer> {
  if (row === null) return unchanged({ outcome: 'lost' })
  if (row.spent === request.token) return unchanged({ outcome: 'released' })
  if (row.token !== request.token) return unchanged({ outcome: 'lost' })
  const outcome = isHeld(row, now) ? 'released' : 'lost'
  return { answer: { outcome }, next: freed(row, now), wakes: row.waitingUntil > now }
}

export function revokeLease(
  row: LeaseRow | null,
  request: RevokeRequest,
  now: number,
): LeaseStep<RevokeAnswer> {
  if (row === null || !isHeld(row, now)) return unchanged({ outcome: 'free' })
  if (row.fence !== request.fence) return unchanged({ outcome: 'changed', fence: row.fence })
  if (request.immediate) {
    return { answer: { outcome: 'released' }, next: freed(row, now), wakes: row.waitingUntil > now }
  }
  return changed({ outcome: 'revoked', remainingMs: row.expiresAt - now }, { ...row, revoked: true })
}

/** What operators see of a record, or null if nobody holds the key. Never the token. */
export function describeLease(key: string, row: LeaseRow | null, now: number): LeaseRecord | null {
  if (row === null || !isHeld(row, now)) return null
  const { fence, holder, acquiredAt, expiresAt, revoked } = row
  const awaited = row.waitingUntil > now
  return { key, fence, holder, acquiredAt, expiresAt, remainingMs: expiresAt - now, awaited, revoked }
}

/** A record that nobody will miss: free for long enough, and its fence is one that the clock has passed. */
export function isPurgeable(row: LeaseRow, retentionMs: number, now: number): boolean {
  return !isHeld(row, now) && row.expiresAt + retentionMs <= now && row.fence <= now * 1000
}

/**
 * The next fence of a record: greater than its last one and than any in the namespace, and not behind the clock in
 * microseconds, so that fences go on rising after records were lost and from one store to the next.
 *
 * @throws DriverFault `unusable` when no safe integer is left (a clock that was once past the year 2255)
 */
export function mintFence(previous: { readonly fence: number } | null, moment: StoreMoment): number {
  const fence = Math.max((previous?.fence ?? 0) + 1, moment.floor + 1, moment.now * 1000)
  if (Number.isSafeInteger(fence)) return fence
  throw new DriverFault(
    'unusable',
    `The next fence would be ${fence}, which is not a safe integer. Correct the clock (it says ${moment.now} ms) and delete the record.`,
  )
}

/** The moment this long after now, whole: rounded up, so that a store never counts less time than a client does. */
export function momentAfter(now: number, durationMs: number): number {
  return now + Math.ceil(durationMs)
}

function isHeld(row: LeaseRow, now: number): boolean {
  return row.token !== null && row.expiresAt > now
}

/** The same acquisition asks again, because its first answer was lost: same fence, and never less time than before. */
function rearm(row: LeaseRow, request: AcquireRequest, now: number): LeaseStep<AcquireAnswer> {
  const expiresAt = Math.max(row.expiresAt, momentAfter(now, request.ttlMs))
  return changed(
    { outcome: 'granted', fence: row.fence, remainingMs: expiresAt - now },
    { ...row, expiresAt },
  )
}

/** Contention. The wish to be woken goes into the record that the release will read: no wake-up can be missed. */
function refuse(row: LeaseRow, request: AcquireRequest, now: number): LeaseStep<AcquireAnswer> {
  const { fence, holder, expiresAt } = row
  const answer: AcquireAnswer = { outcome: 'held', fence, remainingMs: expiresAt - now, holder }
  const waitingUntil = request.waitingMs > 0 ? momentAfter(now, request.waitingMs) : 0
  return waitingUntil > row.waitingUntil ? changed(answer, { ...row, waitingUntil }) : unchanged(answer)
}

function freed(row: LeaseRow, now: number): LeaseRow {
  const expiresAt = Math.min(row.expiresAt, now)
  return { ...row, token: null, spent: row.token, expiresAt, waitingUntil: 0, revoked: false }
}

function unchanged<Answer>(answer: Answer): LeaseStep<Answer> {
  return { answer, next: null, wakes: false }
}

function changed<Answer>(answer: Answer, next: LeaseRow): LeaseStep<Answer> {
  return { answer, next, wakes: false }
}
