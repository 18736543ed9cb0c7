import type { BusyAnswer, FailedAnswer } from '../driver/driver.ts'
import type { Answered, ItemOptions, Sent } from './batcher.ts'
import type { Moment } from './clock.ts'
import { Deadline, type Trusted } from './deadline.ts'
import type { LossReason } from './errors.ts'
import type { Renewable } from './heartbeat.ts'
import { leaseSignal } from './lease-signal.ts'
import type { ResolvedLeaseOptions } from './options.ts'
import type { ServiceContext } from './service-context.ts'

/** What the store may say to a renewal, of a lease or of a run. */
export type RenewalAnswer =
  | { readonly outcome: 'held'; readonly remainingMs: number; readonly stop?: string | null }
  | { readonly outcome: 'lost'; readonly reason?: 'gone' | 'revoked' }
  | BusyAnswer
  | FailedAnswer

/** Who owns a hold: a lease or a run. None of these may throw. */
export interface HoldOwner {
  /** Sends one renewal. */
  sendRenewal(ttlMs: number, options: ItemOptions): Promise<Sent<RenewalAnswer>>
  /** What the signal is aborted with, and what `assert` throws. */
  lossError(reason: LossReason): Error
  onRenewed(remainingMs: number): void
  onRenewalFailed(attempt: number, error: unknown): void
  /** Called once, right after the signal was aborted. */
  onLost(reason: LossReason): void
  /** Renewals give it no more time: it ends with the maximum lifetime. Called once. */
  onLifetimeReached(): void
  /** The store passed on a request to stop. May come several times. */
  onStopRequested(reason: string): void
}

export interface HoldOptions {
  readonly context: Pick<ServiceContext, 'options' | 'heartbeat' | 'watch'>
  readonly owner: HoldOwner
  readonly lease: ResolvedLeaseOptions
  /** Just before the request that was granted was sent. */
  readonly sentAt: Moment
  readonly remainingMs: number
  /** The grant was for less than the ttl: the rest is asked for at once, and until it has come. Default false. */
  readonly isCutShort?: boolean
}

/** What came of asking for more time. */
export type RenewalOutcome = 'held' | 'lost' | { readonly failed: unknown }

/**
 * The belief in one grant: its deadline, its renewals, its loss. Shared by leases and runs, so that the rules of trust
 * are written once.
 *
 * It begins held and ends once: given back by its owner ({@link end}), or lost, for one of the {@link LossReason}s. A
 * loss is final, whatever a late answer says.
 */
export class Hold implements Renewable, Trusted {
  readonly deadline: Deadline
  readonly renewalSlackMs: number
  readonly #context: HoldOptions['context']
  readonly #owner: HoldOwner
  readonly #lease: ResolvedLeaseOptions
  readonly #lifeEndsAt: number
  #ttlMs: number
  #state: 'held' | 'ended' | LossReason = 'held'
  #dueAt = Infinity
  #attempt = 1
  #lifetimeReached = false
  #isBeingReturned = false
  #renewing: boolean
  #controller: AbortController | undefined

  constructor({ context, owner, lease, sentAt, remainingMs, isCutShort = false }: HoldOptions) {
    const { ttlMs, heartbeatMs, maxLifetimeMs } = lease
    this.#context = context
    this.#owner = owner
    this.#lease = lease
    this.#ttlMs = ttlMs
    this.#lifeEndsAt = sentAt.monotonic + maxLifetimeMs
    this.deadline = new Deadline(context.options.clock, sentAt, remainingMs, this.#lifeEndsAt)
    this.renewalSlackMs = (heartbeatMs ?? 0) / 10
    this.#renewing = heartbeatMs !== null || isCutShort
    this.#planRenewal(isCutShort ? 0 : (heartbeatMs ?? Infinity), sentAt.monotonic)
    context.watch.watch(this)
  }

  /** Exact at any moment: looks at both clocks, and declares the loss if the deadline has passed. */
  get isHeld(): boolean {
    if (this.#state === 'held' && this.deadline.remainingMs <= 0) this.deadlinePassed()
    return this.#state === 'held'
  }

  /** Trusted time left, 0 once it is lost or ended. */
  get remainingMs(): number {
    return this.isHeld ? this.deadline.remainingMs : 0
  }

  /** Why it was lost, or null. */
  get lossReason(): LossReason | null {
    return this.isHeld || this.#state === 'held' || this.#state === 'ended' ? null : this.#state
  }

  /** What somebody is told who relies on it although it is not held. */
  get lossError(): Error {
    return this.#owner.lossError(this.lossReason ?? 'released')
  }

  /** @throws LeaseLostError unless it is held */
  assertHeld(): void {
    if (!this.isHeld) throw this.lossError
  }

  /** Aborted on loss or {@link abort}, not when it is given back. Made when it is first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      leaseSignal(this.#controller, this)
      if (this.lossReason !== null) this.#controller.abort(this.lossError)
    }
    return this.#controller.signal
  }

  /** Aborts the signal although the hold goes on: its owner is asked to stop. */
  abort(reason: Error): void {
    void this.signal
    this.#controller?.abort(reason)
  }

  /** Given back by its owner. Nothing is renewed or watched any more. False if it had ended before. */
  end(): boolean {
    if (!this.isHeld) return false
    this.#state = 'ended'
    this.#forget()
    return true
  }

  /**
   * Its owner gives it back, and renews it until the store has confirmed that. A renewal that finds it gone meanwhile ends
   * it, and is no loss.
   */
  beginReturn(): void {
    this.#isBeingReturned = true
  }

  /** Renews no more; what is held lapses at its deadline. */
  stopRenewing(): void {
    this.#renewing = false
    this.#dueAt = Infinity
  }

  lose(reason: LossReason): void {
    if (this.#state !== 'held') return
    this.#state = reason
    this.#forget()
    this.#controller?.abort(this.lossError)
    this.#owner.onLost(reason)
  }

  /** At least `ttlMs` from now, also for later renewals. */
  async extend(ttlMs: number): Promise<RenewalOutcome> {
    this.#ttlMs = Math.max(this.#ttlMs, ttlMs)
    return this.#askForTime(ttlMs)
  }

  // ---- Renewable and Trusted: called by the service's timers

  get renewalDueAt(): number {
    return this.#dueAt
  }

  renew(): void {
    this.#dueAt = Infinity
    void this.#askForTime(this.#ttlMs)
  }

  deadlinePassed(): void {
    this.lose(this.#lifetimeReached ? 'max-lifetime' : 'expired')
  }

  // ----

  async #askForTime(wantedMs: number): Promise<RenewalOutcome> {
    for (let busy = 0; ; busy++) {
      if (!this.isHeld) return 'lost'
      const ttlMs = this.#withinLifetime(wantedMs)
      if (ttlMs <= 0) return 'held'
      const sent = await this.#owner.sendRenewal(ttlMs, {
        timeoutMs: this.#renewalTimeout(),
        attempt: this.#attempt,
        lockedRows: busy === 0 ? 'skip' : 'wait',
      })
      if (!this.isHeld) return 'lost'
      if (sent.kind === 'failed') {
        void sent.settled.then((late) => late !== null && this.#take(late, true))
        return this.#renewalFailed(sent.fault)
      }
      const { answer } = sent
      if (answer.outcome === 'held' || answer.outcome === 'lost') return this.#take(sent)
      if (answer.outcome === 'busy' && busy === 0) continue
      return this.#renewalFailed(
        answer.outcome === 'failed' ? answer.error : new Error('The record is locked by another statement.'),
      )
    }
  }

  /**
   * Takes the store's word. That of a renewal that was given up counts as well when it comes at last: with answers that
   * are slow every time, nothing else would keep the lease.
   */
  #take({ answer, sentAt }: Answered<RenewalAnswer>, isLate = false): 'held' | 'lost' {
    if (!this.isHeld) return 'lost'
    const { heartbeatMs } = this.#lease
    if (answer.outcome === 'lost') {
      if (this.#isBeingReturned) this.end()
      else this.lose(answer.reason ?? 'gone')
      return 'lost'
    }
    if (answer.outcome !== 'held') return 'held'
    const isNews = this.deadline.confirm(sentAt, answer.remainingMs)
    if (isLate && !isNews) return 'held'
    this.#attempt = 1
    // From when it was sent: after a slow answer, counting from the answer could miss the deadline.
    if (heartbeatMs === null) this.stopRenewing()
    else this.#planRenewal(heartbeatMs, sentAt.monotonic)
    this.#owner.onRenewed(this.deadline.remainingMs)
    if (typeof answer.stop === 'string') this.#owner.onStopRequested(answer.stop)
    return 'held'
  }

  /** Tries again soon: eight times before the deadline, if the answers come fast. */
  #renewalFailed(error: unknown): RenewalOutcome {
    this.#owner.onRenewalFailed(this.#attempt, error)
    this.#attempt++
    const pauseMs = Math.min(this.#lease.heartbeatMs ?? Infinity, Math.max(5, this.deadline.remainingMs / 8))
    this.#planRenewal(pauseMs, this.#now)
    return { failed: error }
  }

  #planRenewal(inMs: number, from: number): void {
    if (!this.#renewing || !this.isHeld) return
    this.#dueAt = from + inMs
    this.#context.heartbeat.watch(this)
  }

  /**
   * Cut to what the maximum lifetime leaves; 0 when that has been used up. Renewals that cannot add any time go on all
   * the same: they are how a holder learns that its lease was revoked.
   */
  #withinLifetime(wantedMs: number): number {
    const leftMs = Math.ceil(this.#lifeEndsAt - this.#now)
    if (wantedMs < leftMs) return wantedMs
    if (!this.#lifetimeReached) this.#owner.onLifetimeReached()
    this.#lifetimeReached = true
    return Math.max(0, leftMs)
  }

  /** Short enough that a renewal which hangs can be tried again before the deadline. */
  #renewalTimeout(): number {
    const { requestTimeoutMs } = this.#lease
    return Math.ceil(Math.min(requestTimeoutMs, Math.max(10, this.deadline.remainingMs / 3)))
  }

  #forget(): void {
    this.#dueAt = Infinity
    this.#context.watch.forget(this)
    this.#context.heartbeat.forget(this)
  }

  get #now(): number {
    return this.#context.options.clock.monotonic()
  }
}
