import type { BusyAnswer, CallOptions, FailedAnswer } from './driver.ts'

/**
 * Leases of plain keys in one namespace.
 *
 * Every call is *batch in, batch out*: it takes 1 to `abilities.maxBatch` items, is one atomic step in one round
 * trip, and answers item by item in the same order. A rejected promise is a `DriverFault` and concerns the whole
 * batch; one bad item answers `failed` for itself and leaves the others alone.
 *
 * Rules that hold for every call (the contract suite checks each):
 *
 * - The store's clock decides expiry. Requests carry durations only.
 * - Keys arrive in stored form: 1 to 255 UTF-8 bytes, well-formed, no NUL. They are compared byte by byte.
 * - The core sends a key at most once per batch. A batch that names a key twice all the same gets at most one grant
 *   for it, and no error for the others; answers are matched by key *and* token.
 * - Fences are safe integers, exact to the last digit.
 */
export interface LockDriver {
  /**
   * Grants a key that is free, expired, or already held under the same token.
   *
   * Granting and minting the fence are one step: `fence = max(previous fence + 1, store clock in µs)`. With the token
   * that holds the key already, the expiry is re-armed (never moved back) and the fence stays; once that lease has
   * lapsed, its token is granted anew, with a greater fence. The token of a revoked lease is neither granted nor re-armed.
   */
  acquire(requests: readonly AcquireRequest[], call: CallOptions): Promise<readonly AcquireAnswer[]>

  /**
   * Renews leases: key and token must match, the lease must not have expired, and its expiry never moves back:
   * `expires = max(expires, store now + ttl)`. A record that is not there is lost, never created.
   */
  refresh(requests: readonly RefreshRequest[], call: CallOptions): Promise<readonly RefreshAnswer[]>

  /**
   * Frees keys whose token matches, remembers the token as spent, and wakes waiters if the record says that somebody
   * waits. A lease that had lapsed before answers `lost`, and its token is spent all the same. Asked again with the
   * token that the record released last, it answers `released`. May commit asynchronously: a lost release only means
   * that the next one waits for the ttl.
   */
  release(requests: readonly ReleaseRequest[], call: CallOptions): Promise<readonly ReleaseAnswer[]>

  /**
   * Takes a key from the holder whose fence the operator saw, and from no other. `immediate: false` marks the lease
   * revoked: its next refresh answers `lost`, and the key stays closed until the holder has released it or it has
   * expired. `immediate: true` frees it at once, as a release does (the token is spent, waiters are woken), which can
   * break exclusive belief until the holder's next refresh.
   */
  revoke(request: RevokeRequest, call: CallOptions): Promise<RevokeAnswer>

  /** The held leases of these keys, in the same order; `null` for a key that nobody holds. Never guesses. */
  peek(keys: readonly string[], call: CallOptions): Promise<readonly (LeaseRecord | null)[]>

  /** One page of the held leases of the namespace, in no particular order. */
  scan(request: ScanRequest, call: CallOptions): Promise<ScanPage>

  /**
   * Deletes at most `limit` records of this namespace that are free, and have been for `retentionMs`; never one whose fence is ahead of
   * the store's clock. Answers how many it deleted. A store that forgets by itself answers 0.
   */
  purge(request: PurgeRequest, call: CallOptions): Promise<number>
}

export interface AcquireRequest {
  readonly key: string
  /** 128 random bits or more, URL-safe text of at most 64 characters, never used for another acquisition. */
  readonly token: string
  readonly ttlMs: number
  /** Who asks, for operators: a JSON text of at most 1,000 bytes. Never contains the token. */
  readonly holder: string
  /**
   * 0, or how long from now somebody waits for this key: where the answer is `held`, the same step sets the lease
   * record's `waiting until` to `max(itself, store now + waitingMs)`, so that the release knows whom to wake.
   */
  readonly waitingMs: number
}

export type AcquireAnswer =
  | { readonly outcome: 'granted'; readonly fence: number; readonly remainingMs: number }
  /** Contention, a normal answer. `remainingMs` says when the lease would lapse, `holder` who has it. */
  | {
      readonly outcome: 'held'
      readonly fence: number
      readonly remainingMs: number
      readonly holder: string
    }
  /** The token is the one this record released last: a delayed duplicate. Nothing was granted. */
  | { readonly outcome: 'spent' }
  | BusyAnswer
  | FailedAnswer

export interface RefreshRequest {
  readonly key: string
  readonly token: string
  readonly ttlMs: number
}

export type RefreshAnswer =
  | { readonly outcome: 'held'; readonly remainingMs: number }
  /** Not ours any more. `revoked`: still closed to others until this holder releases it or its expiry passes. */
  | { readonly outcome: 'lost'; readonly reason: 'gone' | 'revoked' }
  | BusyAnswer
  | FailedAnswer

export interface ReleaseRequest {
  readonly key: string
  readonly token: string
}

export type ReleaseAnswer =
  | { readonly outcome: 'released' }
  /** The lease had ended before: expired (the record is freed if nobody took it), taken over, or not there. */
  | { readonly outcome: 'lost' }
  | BusyAnswer
  | FailedAnswer

export interface RevokeRequest {
  readonly key: string
  /** The fence of the lease that the operator saw. */
  readonly fence: number
  readonly immediate: boolean
}

export type RevokeAnswer =
  | { readonly outcome: 'revoked'; readonly remainingMs: number }
  | { readonly outcome: 'released' }
  /** Nobody holds the key. */
  | { readonly outcome: 'free' }
  /** Somebody else holds it by now, under this fence. */
  | { readonly outcome: 'changed'; readonly fence: number }
  | BusyAnswer
  | FailedAnswer

/** A held lease as operators see it. Times are the store's, in milliseconds since the epoch. */
export interface LeaseRecord {
  readonly key: string
  readonly fence: number
  readonly holder: string
  readonly acquiredAt: number
  readonly expiresAt: number
  readonly remainingMs: number
  /** Somebody said lately that it waits for this key. */
  readonly awaited: boolean
  /** Revoked, and not yet given back. */
  readonly revoked: boolean
}

export interface ScanRequest {
  /** Only keys whose stored form begins with this; `''` for all. */
  readonly prefix: string
  readonly limit: number
  /** The `cursor` of the page before; `null` for the first. */
  readonly cursor: string | null
}

export interface ScanPage {
  readonly records: readonly LeaseRecord[]
  /** Where the next page begins; `null` after the last. A page can be empty and still have a next one. */
  readonly cursor: string | null
}

export interface PurgeRequest {
  readonly retentionMs: number
  readonly limit: number
}
