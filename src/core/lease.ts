import type { Duration } from './duration.ts'
import { type LossReason, quoted } from './errors.ts'
import type { ReleaseOutcome } from './give-back.ts'
import { resolveExtension } from './options.ts'
import { storeError } from './store-call.ts'
import type { Tenure } from './tenure.ts'

let tenureOfLease: (lease: Lease) => Tenure

/** What a lease stands for, which its holder does not get to see. */
export function tenureOf(lease: Lease): Tenure {
  return tenureOfLease(lease)
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
  readonly #tenure: Tenure

  static {
    tenureOfLease = (lease) => lease.#tenure
  }

  /** Made by a `LockService`. */
  constructor(tenure: Tenure) {
    this.key = tenure.key
    this.fence = tenure.fence
    this.#tenure = tenure
  }

  /**
   * The ownership secret of this acquisition. Whoever has it can release the lease: don't log it. (It is no property of
   * the object itself, so that logging a lease does not.)
   */
  get token(): string {
    return this.#tenure.token
  }

  /**
   * Aborts when the lease is lost, no later than its deadline; not when it is released. Its own `aborted` and
   * `throwIfAborted()` are exact even right after a blocked event loop; listeners are called in the next turn then.
   */
  get signal(): AbortSignal {
    return this.#tenure.hold.signal
  }

  /** Milliseconds until the deadline after which the lease is not trusted; 0 once it is lost or released. */
  get remainingMs(): number {
    return this.#tenure.hold.remainingMs
  }

  /** Exact at any moment: looks at both clocks. */
  isHeld(): boolean {
    return this.#tenure.hold.isHeld
  }

  /** @throws LeaseLostError (`LEASE_LOST`) unless the lease is held */
  assertHeld(): void {
    this.#tenure.hold.assertHeld()
  }

  /** Why the lease was lost, or null while it is held and after a release. */
  get lossReason(): LossReason | null {
    return this.#tenure.hold.lossReason
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
    const { hold } = this.#tenure
    hold.assertHeld()
    const outcome = await hold.extend(ttlMs)
    if (outcome === 'held') return
    if (outcome === 'lost') throw hold.lossError
    throw storeError(`extend the lease of ${quoted(this.key)}, held until its deadline`, outcome.failed)
  }

  /**
   * Gives the key back. Idempotent, settles within one request timeout, never throws, never frees a successor's lease.
   * The lease is not trusted from the call on.
   */
  release(): Promise<ReleaseOutcome> {
    return this.#tenure.release()
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
