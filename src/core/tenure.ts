import type { ItemOptions, Sent } from './batcher.ts'
import { publish } from './channels.ts'
import type { Moment } from './clock.ts'
import { LeaseLostError, type LossReason } from './errors.ts'
import { type Abandonments, giveBack, type ReleaseOutcome } from './give-back.ts'
import { Hold, type HoldOwner, type RenewalAnswer } from './hold.ts'
import type { ResolvedLeaseOptions, ResolvedLockServiceOptions } from './options.ts'
import type { ServiceContext } from './service-context.ts'

/** What a service provides for all its leases. */
export interface LeaseDesk {
  readonly context: ServiceContext
  readonly abandonments: Abandonments
  /** Called once for each lease when it is given back or lost. */
  onLeaseEnd(tenure: Tenure): void
}

/** What an acquisition knows when a grant has come. */
export interface Grant {
  /** The key as the caller wrote it. */
  readonly key: string
  readonly storedKey: string
  readonly token: string
  readonly fence: number
  readonly sentAt: Moment
  readonly remainingMs: number
  /** It was granted for less than its ttl: the rest is asked for at once. */
  readonly isCutShort: boolean
  /** Calls under the same token that were given up while they were in the air. */
  readonly unsettled: readonly Promise<unknown>[]
}

/**
 * The inner side of a `Lease`: what was granted, and what becomes of it. There may be tens of thousands of them, so it keeps
 * no closures and nothing twice.
 */
export class Tenure implements HoldOwner {
  readonly key: string
  readonly storedKey: string
  readonly token: string
  readonly fence: number
  readonly hold: Hold
  readonly #desk: LeaseDesk
  readonly #options: ResolvedLeaseOptions
  readonly #unsettled: readonly Promise<unknown>[]
  readonly #since: number
  #released: Promise<ReleaseOutcome> | undefined

  constructor(desk: LeaseDesk, options: ResolvedLeaseOptions, grant: Grant) {
    this.key = grant.key
    this.storedKey = grant.storedKey
    this.token = grant.token
    this.fence = grant.fence
    this.#desk = desk
    this.#options = options
    this.#unsettled = grant.unsettled
    this.#since = grant.sentAt.monotonic
    this.hold = new Hold({ ...grant, context: desk.context, owner: this, lease: options })
  }

  /** Whether it is one of this key in the namespace and store of this service. */
  isOf({ driver, storedNamespace }: ResolvedLockServiceOptions, storedKey: string): boolean {
    const { options } = this.#desk.context
    return (
      this.storedKey === storedKey && options.driver === driver && options.storedNamespace === storedNamespace
    )
  }

  /** Idempotent; see `Lease.release`. */
  release(): Promise<ReleaseOutcome> {
    this.#released ??= this.#release()
    return this.#released
  }

  // ---- HoldOwner

  sendRenewal(ttlMs: number, item: ItemOptions): Promise<Sent<RenewalAnswer>> {
    const { storedKey: key, token } = this
    return this.#desk.context.refreshes.submit({ key, token, ttlMs }, item)
  }

  lossError(reason: LossReason): LeaseLostError {
    return new LeaseLostError({ key: this.key, fence: this.fence, reason })
  }

  onRenewed(remainingMs: number): void {
    publish('leasehold:refresh', () => ({ ...this.#event(), remainingMs }))
  }

  onRenewalFailed(attempt: number, error: unknown): void {
    const { remainingMs } = this.hold.deadline
    publish('leasehold:refresh-failed', () => ({ ...this.#event(), attempt, remainingMs, error }))
  }

  onLost(reason: LossReason): void {
    publish('leasehold:lost', () => ({ ...this.#event(), reason, heldMs: this.#heldMs() }))
    this.#ended()
    // The key stays closed to others until the holder of a revoked lease has confirmed.
    if (reason === 'revoked' || reason === 'closed') void this.release()
  }

  onLifetimeReached(): void {
    const { maxLifetimeMs } = this.#options
    publish('leasehold:max-lifetime', () => ({ ...this.#event(), maxLifetimeMs }))
  }

  onStopRequested(): void {}

  // ----

  async #release(): Promise<ReleaseOutcome> {
    const wasHeld = this.hold.end()
    const { context } = this.#desk
    const answer = await giveBack(context, this.storedKey, this.token, this.#options.requestTimeoutMs)
    const outcome = wasHeld || answer === 'unknown' ? answer : 'already-lost'
    if (wasHeld) this.#ended()
    publish('leasehold:release', () => ({ ...this.#event(), outcome, heldMs: this.#heldMs() }))
    return outcome
  }

  #ended(): void {
    this.#desk.abandonments.followUp(this.storedKey, this.token, this.#unsettled)
    this.#desk.onLeaseEnd(this)
  }

  #event(): { namespace: string; key: string; fence: number } {
    return { namespace: this.#desk.context.options.namespace, key: this.key, fence: this.fence }
  }

  #heldMs(): number {
    return this.#desk.context.options.clock.monotonic() - this.#since
  }
}
