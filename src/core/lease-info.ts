import type { LeaseRecord } from '../driver/lock-driver.ts'
import { type Holder, parseHolder } from './holder.ts'

/** A held lease as operators see it. Never the token. */
export interface LeaseInfo {
  /** The key in the form in which the store has it; long and odd keys are hashed there, see `holder.key`. */
  readonly key: string
  readonly fence: number
  readonly holder: Holder
  /** On the store's clock. */
  readonly acquiredAt: Date
  /** On the store's clock. */
  readonly expiresAt: Date
  readonly remainingMs: number
  /** Somebody waits for it, or did within the last seconds. */
  readonly awaited: boolean
  /** An operator asked for it back, and its holder has not confirmed yet. */
  readonly revoked: boolean
}

export function toLeaseInfo(record: LeaseRecord): LeaseInfo {
  const { key, fence, remainingMs, awaited, revoked } = record
  return {
    key,
    fence,
    holder: parseHolder(record.holder),
    acquiredAt: new Date(record.acquiredAt),
    expiresAt: new Date(record.expiresAt),
    remainingMs,
    awaited,
    revoked,
  }
}
