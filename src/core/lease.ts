import { publish } from './channels.ts'
import type { Moment } from './clock.ts'
import type { Duration } from './duration.ts'
import {
  type DriverFault,
  isFinal,
  LeaseLostError,
  type LossReason,
  messageOf,
  quoted,
  StoreUnavailableError,
  StoreUnusableError,
} from './errors.ts'
import { giveBack, type ReleaseOutcome } from './give-back.ts'
import { Hold, type HoldOwner } from './hold.ts'
import { type ResolvedLeaseOptions, type ResolvedLockServiceOptions, resolveExtension } from './options.ts'
import type { ServiceContext } from './service-context.ts'

/** What a `LockService` knows when a grant has come. */
export interface LeaseGrant {
  readonly context: ServiceContext
  readonly options: ResolvedLeaseOptions
  /** The key as the caller wrote it. */
  readonly key: string
  readonly storedKey: string
  readonly token: string
  readonly fence: number
  readonly sentAt: Moment
  readonly remainingMs: number
  /** It was granted for less than its ttl: the rest is asked for at once. */
  readonly isCutShort: boolean
  /** Called once when it is given back or lost. */
  readonly onEnd: (lease: Lease) => void
}

interface LeaseFriend {
  lose(lease: Lease, reason: LossReason): void
  isOf(lease: Lease, service: ResolvedLockServiceOptions, storedKey: string): boolean
}

let friend: LeaseFriend

/** Ends a lease as lost: its service is closing. */
export function loseLease(lease: Lease, reason: LossReason): void {
  friend.lose(lease, reason)
}

/** Whether it is a lease of this key in the namespace and store of this service. */
export function isLeaseOf(lease: Lease, service: ResolvedLockServiceOptions, storedKey: string): boolean {
  return friend.isOf(lease, service, storedKey)
}

/**
 * A lock held until a moment in time, renewed by a heartbeat until it is released, lost or reaches its maximum lifetime.
 *
 * Check `isHeld()` or `assertHeld()` before each step that must not happen twice, stop when `signal` aborts, and send
 * `fence` along with writes, so that the resource can refuse those of a holder that does not know yet that it lost.
 */
export class Lease {
  /** The key, as it was acquired. */
  readonly key: string
  /** The fencing token: a safe integer, greater than that of every earlier grant of this key. */
  readonly fence: number
  readonly #grant: LeaseGrant
  readonly #hold: Hold
  #released: Promise<ReleaseOutcome> | undefined

  static {
    friend = {
      lose: (lease, reason) => lease.#hold.lose(reason),
      isOf: (lease, { driver, storedNamespace }, storedKey) => {
        const { options } = lease.#grant.context
        return (
          lease.#grant.storedKey === storedKey &&
          options.driver === driver &&
          options.storedNamespace === storedNamespace
        )
      },
    }
  }

  /** Made by a `LockService`. */
  constructor(grant: LeaseGrant) {
    const { context, options } = grant
    this.key = grant.key
    this.fence = grant.fence
    this.#grant = grant
    this.#hold = new Hold({
      clock: context.options.clock,
      heartbeat: context.heartbeat,
      watch: context.watch,
      owner: this.#owner(),
      sentAt: grant.sentAt,
      remainingMs: grant.remainingMs,
      isCutShort: grant.isCutShort,
      ttlMs: options.ttlMs,
      heartbeatMs: options.heartbeatMs,
      maxLifetimeMs: options.maxLifetimeMs,
      requestTimeoutMs: options.requestTimeoutMs,
    })
  }

  /**
   * The ownership secret of this acquisition. Whoever has it can release the lease: don't log it. (It is no property of
   * the object itself, so that logging a lease does not.)
   */
  get token(): string {
    return this.#grant.token
  }

  /**
   * Aborts when the lease is lost, no later than its deadline; not when it is released. Its own `aborted` and
   * `throwIfAborted()` are exact even right after a blocked event loop; listeners are called in the next turn then.
   */
  get signal(): AbortSignal {
    return this.#hold.signal
  }

  /** Milliseconds until the deadline after which the lease is not trusted; 0 once it is lost or released. */
  get remainingMs(): number {
    return this.#hold.remainingMs
  }

  /** Exact at any moment: looks at both clocks. */
  isHeld(): boolean {
    return this.#hold.isHeld
  }

  /** @throws LeaseLostError (`LEASE_LOST`) unless the lease is held */
  assertHeld(): void {
    if (!this.#hold.isHeld) throw this.#lossError(this.#hold.lossReason ?? 'released')
  }

  /** Why the lease was lost, or null while it is held and after a release. */
  get lossReason(): LossReason | null {
    return this.#hold.lossReason
  }

  /**
   * Asks for at least `duration` from now, for later renewals too. Giving up time is {@link release}.
   *
   * @param duration 100 ms to 365 days; what the maximum lifetime does not allow is cut off
   * @throws InvalidOptionError, LeaseLostError, StoreUnavailableError or StoreUnusableError (the lease is still held
   *   until its deadline)
   */
  async extend(duration: Duration): Promise<void> {
    const ttlMs = resolveExtension(duration)
    this.assertHeld()
    const outcome = await this.#hold.extend(ttlMs)
    if (outcome === 'held') return
    if (outcome === 'lost') throw this.#lossError(this.#hold.lossReason ?? 'released')
    throw this.#extensionError(outcome.failed)
  }

  /**
   * Gives the key back. Idempotent, settles within one request timeout, never throws, never frees a successor's lease.
   * The lease is not trusted from the call on.
   */
  release(): Promise<ReleaseOutcome> {
    this.#released ??= this.#release()
    return this.#released
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  async #release(): Promise<ReleaseOutcome> {
    const { context, storedKey, token, options, onEnd } = this.#grant
    const wasHeld = this.#hold.end()
    const answer = await giveBack(context, storedKey, token, options.requestTimeoutMs)
    const outcome = wasHeld || answer === 'unknown' ? answer : 'already-lost'
    if (wasHeld) onEnd(this)
    publish('leasehold:release', () => ({ ...this.#event(), outcome, heldMs: this.#heldMs() }))
    return outcome
  }

  #owner(): HoldOwner {
    const { context, storedKey, token, onEnd, options } = this.#grant
    return {
      sendRenewal: (ttlMs, item) => context.refreshes.submit({ key: storedKey, token, ttlMs }, item),
      lossError: (reason) => this.#lossError(reason),
      onRenewed: (remainingMs) => publish('leasehold:refresh', () => ({ ...this.#event(), remainingMs })),
      onRenewalFailed: (attempt, error) =>
        publish('leasehold:refresh-failed', () => ({
          ...this.#event(),
          attempt,
          remainingMs: this.#hold.deadline.remainingMs,
          error: error as DriverFault,
        })),
      onLost: (reason) => {
        publish('leasehold:lost', () => ({ ...this.#event(), reason, heldMs: this.#heldMs() }))
        onEnd(this)
        // The key stays closed to others until the holder of a revoked lease has confirmed.
        if (reason === 'revoked' || reason === 'closed') void this.release()
      },
      onLifetimeReached: () =>
        publish('leasehold:max-lifetime', () => ({ ...this.#event(), maxLifetimeMs: options.maxLifetimeMs })),
      onStopRequested: () => {},
    }
  }

  #lossError(reason: LossReason): LeaseLostError {
    return new LeaseLostError({ key: this.key, fence: this.fence, reason })
  }

  #extensionError(cause: unknown): StoreUnavailableError | StoreUnusableError {
    const what = `The lease of ${quoted(this.key)} could not be extended`
    if (isFinal(cause)) {
      return new StoreUnusableError(`${what}: ${messageOf(cause)} It is held until its deadline.`, { cause })
    }
    const message = `${what}: the store did not confirm it. It is held until its deadline; try again.`
    return new StoreUnavailableError(message, 'unknown', { cause })
  }

  #event(): { namespace: string; key: string; fence: number } {
    return { namespace: this.#grant.context.options.namespace, key: this.key, fence: this.fence }
  }

  #heldMs(): number {
    return this.#grant.context.options.clock.monotonic() - this.#grant.sentAt.monotonic
  }
}
