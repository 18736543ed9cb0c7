import type { ItemOptions, Sent } from './batcher.ts'
import { type Moment, sleep } from './clock.ts'
import { Deadline } from './deadline.ts'
import { DriverFault, FenceUnsafeError, isFinal, type LeaseholdError, quoted } from './errors.ts'
import type { FenceLedger } from './fence-ledger.ts'
import { giveBack } from './give-back.ts'
import { Lease } from './lease.ts'
import type { ResolvedAcquireOptions } from './options.ts'
import type { SharedTries } from './shared-tries.ts'
import { storeError } from './store-call.ts'
import { type LeaseDesk, Tenure } from './tenure.ts'
import { mintToken } from './token.ts'
import type { AcquireAnswer } from '../driver/lock-driver.ts'

/** What one try to get a key came to. */
export type Attempt =
  | { readonly kind: 'granted'; readonly lease: Lease }
  | { readonly kind: 'held'; readonly remainingMs: number }
  /** Could not find out. `final`: trying again does not help. */
  | { readonly kind: 'unavailable'; readonly error: LeaseholdError; readonly final: boolean }

/** What all acquisitions of a service share. */
export interface AcquisitionDesk extends LeaseDesk {
  readonly fences: FenceLedger
  readonly sharedTries: SharedTries
}

/** A re-asked acquire is granted no more than this at first, since an earlier copy of it may still come back. */
const longestReaskedTtl = 60_000

const none: readonly never[] = []

/**
 * One caller's way to one lease, over as many tries as its wait allows. It keeps one ownership token until a grant or
 * the end, so that a try whose answer was lost is recognised by the store and not blocked by itself.
 */
export class Acquisition {
  readonly #desk: AcquisitionDesk
  readonly #key: string
  readonly #storedKey: string
  readonly #options: ResolvedAcquireOptions
  #token = mintToken()
  /** Calls under the present token that were given up while they were in the air. */
  #unsettled: readonly Promise<unknown>[] = none
  #tries = 0

  constructor(desk: AcquisitionDesk, key: string, storedKey: string, options: ResolvedAcquireOptions) {
    this.#desk = desk
    this.#key = key
    this.#storedKey = storedKey
    this.#options = options
  }

  /**
   * Asks the store once, and again while the answer is only `busy`.
   *
   * @param waitingMs see `AcquireRequest`
   * @param onSend called just before each request is sent
   */
  async attempt(waitingMs: number, onSend?: () => void): Promise<Attempt> {
    const { clock } = this.#desk.context.options
    const giveUpAt = clock.monotonic() + this.#options.lease.requestTimeoutMs
    for (let rounds = 0; ; rounds++) {
      const sent = await this.#send(waitingMs, rounds, onSend)
      if (sent.kind === 'failed') return this.#failed(sent)
      const { answer, sentAt } = sent
      switch (answer.outcome) {
        case 'granted':
          return this.#granted(answer, sentAt)
        case 'held':
          return { kind: 'held', remainingMs: answer.remainingMs }
        case 'failed':
          return this.#unavailable(answer.error)
        case 'spent':
          this.#changeToken()
          break
        case 'busy':
          break
      }
      const pauseMs = pauseAfter(rounds)
      if (clock.monotonic() + pauseMs >= giveUpAt) {
        return this.#unavailable(
          new DriverFault('retry', 'The record was locked by other statements all the time.'),
        )
      }
      if (pauseMs > 0) await sleep(clock, pauseMs)
    }
  }

  /**
   * One plain try, which may be shared with others who ask at the same time: the lease, or null if the key is held.
   *
   * @throws LeaseholdError if it could not be found out
   */
  async attemptOnce(): Promise<Lease | null> {
    const group = `${this.#options.lease.requestTimeoutMs} ${this.#storedKey}`
    const attempt = await this.#desk.sharedTries.ask(group, (onSend) => this.attempt(0, onSend))
    if (attempt.kind === 'unavailable') throw attempt.error
    return attempt.kind === 'granted' ? attempt.lease : null
  }

  /** Ends without a lease: what may still be applied is released. */
  abandon(): void {
    if (this.#unsettled.length > 0) {
      this.#desk.abandonments.abandon(this.#storedKey, this.#token, this.#unsettled)
      this.#unsettled = none
    }
  }

  #send(waitingMs: number, rounds: number, onSend: (() => void) | undefined): Promise<Sent<AcquireAnswer>> {
    const { context } = this.#desk
    const { lease, label } = this.#options
    const item: ItemOptions = {
      timeoutMs: lease.requestTimeoutMs,
      attempt: ++this.#tries > 1 && this.#isReasked ? 2 : 1,
      lockedRows: rounds > 1 ? 'wait' : 'skip',
      ...(onSend === undefined ? {} : { onSend }),
    }
    const holder = context.describeHolder({ label, key: this.#storedKey === this.#key ? null : this.#key })
    const ttlMs = this.#isReasked ? Math.min(lease.ttlMs, longestReaskedTtl) : lease.ttlMs
    return context.acquires.submit(
      { key: this.#storedKey, token: this.#token, ttlMs, holder, waitingMs },
      item,
    )
  }

  get #isReasked(): boolean {
    return this.#unsettled.length > 0
  }

  async #granted(answer: { fence: number; remainingMs: number }, sentAt: Moment): Promise<Attempt> {
    const { fence, remainingMs } = answer
    const { context, fences } = this.#desk
    if (!fences.accept(this.#storedKey, fence)) {
      await this.#giveUpToken()
      return { kind: 'unavailable', error: unsafeFence(this.#key, fence), final: true }
    }
    if (new Deadline(context.options.clock, sentAt, remainingMs).remainingMs <= 0) {
      await this.#giveUpToken()
      return this.#unavailable(
        new DriverFault('unknown', 'The grant arrived after its own deadline and was given back.'),
      )
    }
    const unsettled = this.#unsettled
    this.#unsettled = none
    const { lease } = this.#options
    const tenure = new Tenure(this.#desk, lease, {
      key: this.#key,
      storedKey: this.#storedKey,
      token: this.#token,
      fence,
      sentAt,
      remainingMs,
      isCutShort: unsettled.length > 0 && lease.ttlMs > longestReaskedTtl,
      unsettled,
    })
    return { kind: 'granted', lease: new Lease(tenure) }
  }

  async #giveUpToken(): Promise<void> {
    await giveBack(this.#desk.context, this.#storedKey, this.#token, this.#options.lease.requestTimeoutMs)
    this.#changeToken()
  }

  /** Goes on under a new token. What is in the air under the old one is still cleaned up after. */
  #changeToken(): void {
    this.#desk.abandonments.followUp(this.#storedKey, this.#token, this.#unsettled)
    this.#unsettled = none
    this.#token = mintToken()
  }

  #failed({ fault, settled }: Extract<Sent<AcquireAnswer>, { kind: 'failed' }>): Attempt {
    if (fault.kind === 'unknown') this.#unsettled = [...this.#unsettled, settled]
    return this.#unavailable(fault)
  }

  #unavailable(cause: unknown): Attempt {
    const error = storeError(`find out whether ${quoted(this.#key)} is free`, cause)
    return { kind: 'unavailable', error, final: isFinal(cause) }
  }
}

/** Twice at once, then 5, 10, 20 … 100 ms: a driver without locks of rows to wait for answers `busy` at once. */
function pauseAfter(rounds: number): number {
  return rounds < 2 ? 0 : Math.min(100, 5 * 2 ** (rounds - 2))
}

function unsafeFence(key: string, fence: number): FenceUnsafeError {
  return new FenceUnsafeError(
    key,
    `The store issued the fence ${fence} for ${quoted(key)}, which is no safe integer or not greater than one seen before. ` +
      'The store went back in time (restored, failed over, clock stepped back with records lost). The grant was given back.',
  )
}
