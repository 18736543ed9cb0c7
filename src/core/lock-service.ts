import type { ScanPage, ScanRequest } from '../driver/lock-driver.ts'
import { AbortListeners } from './abort-listeners.ts'
import { Acquisition, type AcquisitionDesk } from './acquisition.ts'
import { heldInChain, runInside } from './ambient.ts'
import { type LeaseholdEvents, publish } from './channels.ts'
import { inOwnContext } from './clock.ts'
import {
  ClosedError,
  DriverFault,
  LeaseLostError,
  quoted,
  ReentrantAcquireError,
  requireInteger,
  requireOption,
} from './errors.ts'
import { FenceLedger } from './fence-ledger.ts'
import { Abandonments } from './give-back.ts'
import { type Lease, tenureOf } from './lease.ts'
import { type LeaseInfo, toLeaseInfo } from './lease-info.ts'
import {
  type AcquireOptions,
  type LockServiceOptions,
  type ResolvedAcquireOptions,
  resolveAcquireOptions,
  resolveLockServiceOptions,
  resolveRunOptions,
  type RunOptions,
} from './options.ts'
import { readOptions } from './read-options.ts'
import { createServiceContext, type ServiceContext } from './service-context.ts'
import { SharedTries } from './shared-tries.ts'
import { askStore } from './store-call.ts'
import { canBeginStoredKey, toStoredKey, toStoredTarget } from './stored-key.ts'
import type { Tenure } from './tenure.ts'
import { WaitingRoom } from './waiting-room.ts'
import { WakeUps } from './wake-ups.ts'

/** What `runExclusive` gives back. `lost`: the lease ended while the function ran, so it may not have run alone. */
export type RunResult<Result> =
  | { readonly acquired: false }
  | { readonly acquired: true; readonly result: Result; readonly lost: boolean }

export interface ForceReleaseOptions {
  /** Take it only from the holder with this fence, the one that was looked at. Default: whoever holds it now. */
  readonly fence?: number | undefined
  /**
   * Free the key at once instead of when its holder has confirmed or its ttl has passed. The holder goes on trusting
   * its lease until its next renewal: for that long two may hold the key. Default false.
   */
  readonly immediate?: boolean | undefined
}

/**
 * - `revoked`: its holder is told at its next renewal; the key is free once it has confirmed, at the latest when its
 *   ttl has passed
 * - `released`: the key is free
 * - `free`: nobody held it
 * - `changed`: another holder has it by now; it was left alone
 */
export type ForceReleaseOutcome = 'revoked' | 'released' | 'free' | 'changed'

export interface ListOptions {
  /** Only keys that begin with this, in the form in which the store has them. Default: all. */
  readonly prefix?: string | undefined
  /** The most to return. Default 1,000. */
  readonly limit?: number | undefined
}

const contexts = new WeakMap<LockService, ServiceContext>()

/** What a `TaskScheduler` shares with the service that it stands on. */
export function contextOf(service: LockService): ServiceContext {
  const context = contexts.get(service)
  requireOption(context !== undefined, 'locks', 'a LockService, such as connect(url) gives')
  return context
}

/**
 * Locks as leases, on one namespace of one store. Make one for a process and share it: its renewals and concurrent
 * calls travel together.
 */
export class LockService {
  readonly #context: ServiceContext
  readonly #desk: AcquisitionDesk
  readonly #abandonments: Abandonments
  readonly #wakeUps: WakeUps
  readonly #abortListeners = new AbortListeners()
  readonly #room: WaitingRoom
  readonly #held = new Set<Tenure>()
  /** Set from the first {@link close} on. */
  #closing: Promise<void> | undefined
  #lastPurge: number

  /** @throws InvalidOptionError, DriverMissingError */
  constructor(options: LockServiceOptions) {
    const resolved = resolveLockServiceOptions(options)
    const { random, namespace, requestTimeoutMs } = resolved
    const clock = inOwnContext(resolved.clock)
    this.#context = createServiceContext({ ...resolved, clock })
    contexts.set(this, this.#context)
    this.#abandonments = new Abandonments(this.#context)
    this.#wakeUps = new WakeUps({
      session: this.#context.session,
      clock,
      namespace,
      requestTimeoutMs,
      onWake: (key) => this.#room.wake(key),
    })
    this.#room = new WaitingRoom({
      clock,
      random,
      wakeUps: this.#wakeUps,
      abortListeners: this.#abortListeners,
    })
    this.#desk = {
      context: this.#context,
      fences: new FenceLedger(),
      abandonments: this.#abandonments,
      sharedTries: new SharedTries(),
      onLeaseEnd: (tenure) => this.#leaseEnded(tenure),
    }
    this.#lastPurge = clock.monotonic()
  }

  /** The namespace, as it was given. */
  get namespace(): string {
    return this.#context.options.namespace
  }

  /**
   * Takes the lease of a key.
   *
   * @param key any non-empty string
   * @returns the lease, or `null` if somebody else holds the key (at the end of `wait`)
   * @throws InvalidOptionError, ReentrantAcquireError, ClosedError; StoreUnavailableError or StoreUnusableError if it
   *   could not be found out; `options.signal.reason` if that aborts
   * @example
   * await using lease = await locks.acquire('report:42', { ttl: '30s', wait: '5s' })
   * if (lease === null) return
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Lease | null> {
    this.#assertOpen()
    const storedKey = toStoredKey('key', key)
    const resolved = resolveAcquireOptions(options, this.#context.options)
    if (heldInChain((lease) => tenureOf(lease).isOf(this.#context.options, storedKey)))
      throw new ReentrantAcquireError(key)
    resolved.signal?.throwIfAborted()
    const { clock, namespace } = this.#context.options
    const startedAt = clock.monotonic()
    const tell = (ended: Pick<LeaseholdEvents['leasehold:acquire'], 'outcome' | 'fence' | 'error'>): void =>
      publish('leasehold:acquire', () => ({
        namespace,
        key,
        waitedMs: clock.monotonic() - startedAt,
        ...ended,
      }))
    try {
      const lease = await this.#acquire(key, storedKey, resolved)
      tell(lease === null ? { outcome: 'held' } : { outcome: 'granted', fence: lease.fence })
      return lease
    } catch (error) {
      tell({ outcome: resolved.signal?.aborted === true ? 'cancelled' : 'failed', error })
      throw error
    }
  }

  /**
   * Runs a function under the lease of a key, and gives the lease back whatever the function did.
   *
   * @returns `{ acquired: false }` if somebody else holds the key: the function did not run then
   * @throws what the function throws, and what {@link acquire} throws; LeaseLostError with `onLost: 'reject'`
   */
  async runExclusive<Result>(
    key: string,
    fn: (lease: Lease) => Result | PromiseLike<Result>,
    options: RunOptions = {},
  ): Promise<RunResult<Result>> {
    requireOption(typeof fn === 'function', 'fn', 'a function')
    const { acquire, onLocked, onLost } = resolveRunOptions(options)
    const lease = await this.acquire(key, acquire)
    if (lease === null) {
      await onLocked?.(key)
      return { acquired: false }
    }
    try {
      const result = await runInside(lease, async () => fn(lease))
      const reason = lease.lossReason
      if (reason !== null && onLost === 'reject') {
        throw new LeaseLostError({ key, fence: lease.fence, reason, value: result })
      }
      return { acquired: true, result, lost: reason !== null }
    } finally {
      await lease.release()
    }
  }

  /** Runs a function under the lease of a key. @returns `'ran'`, or `'skipped'` if somebody else holds the key */
  async runExclusively(
    key: string,
    fn: (lease: Lease) => unknown,
    options: RunOptions = {},
  ): Promise<'ran' | 'skipped'> {
    const { acquired } = await this.runExclusive(key, fn, options)
    return acquired ? 'ran' : 'skipped'
  }

  /**
   * Wraps a function so that each call runs under the lease of the key, for any scheduler or caller: it takes the same
   * arguments, and answers `'ran'` or `'skipped'`.
   */
  exclusive<Args extends readonly unknown[]>(
    key: string,
    fn: (...args: Args) => unknown,
    options: RunOptions = {},
  ): (...args: Args) => Promise<'ran' | 'skipped'> {
    toStoredKey('key', key)
    const { acquire, ...after } = resolveRunOptions(options)
    resolveAcquireOptions(acquire, this.#context.options)
    requireOption(typeof fn === 'function', 'fn', 'a function')
    return (...args) => this.runExclusively(key, () => fn(...args), { ...acquire, ...after })
  }

  /**
   * Who holds a key; null if nobody does.
   *
   * @param key the key as it was acquired, or a lease that `list()` showed
   * @throws StoreUnavailableError, StoreUnusableError, never a guess
   */
  async peek(key: string | Pick<LeaseInfo, 'key'>): Promise<LeaseInfo | null> {
    this.#assertOpen()
    const storedKey = toStoredTarget(key)
    return this.#peek(storedKey, nameOf(key, storedKey))
  }

  /** The held leases of this namespace, by key. @throws StoreUnavailableError, StoreUnusableError */
  async list(options: ListOptions = {}): Promise<LeaseInfo[]> {
    this.#assertOpen()
    const { prefix = '', limit = 1_000 } = readOptions('list', options, ['prefix', 'limit'])
    requireOption(typeof prefix === 'string', 'prefix', 'a string')
    requireInteger('limit', limit, 1, 1_000_000)
    if (!canBeginStoredKey(prefix)) return []
    const { locks } = this.#context.session
    const found = new Map<string, LeaseInfo>()
    let cursor: string | null = null
    do {
      const request: ScanRequest = { prefix, limit: Math.min(500, limit - found.size), cursor }
      const page: ScanPage = await askStore(this.#context, 'list the leases', (call) =>
        locks.scan(request, call),
      )
      for (const record of page.records) found.set(record.key, toLeaseInfo(record))
      cursor = page.cursor
    } while (cursor !== null && found.size < limit)
    return [...found.values()].slice(0, limit).toSorted((a, b) => (a.key < b.key ? -1 : 1))
  }

  /**
   * Takes a key from its holder, for operators. By default the holder is told first and the key stays closed until it
   * has confirmed, or its ttl has passed.
   *
   * @param key the key as it was acquired, or a lease that `peek()` or `list()` showed
   * @throws InvalidOptionError, StoreUnavailableError, StoreUnusableError
   */
  async forceRelease(
    key: string | Pick<LeaseInfo, 'key'>,
    options: ForceReleaseOptions = {},
  ): Promise<ForceReleaseOutcome> {
    this.#assertOpen()
    const storedKey = toStoredTarget(key)
    const { fence: seen, immediate = false } = readOptions('forceRelease', options, ['fence', 'immediate'])
    requireOption(typeof immediate === 'boolean', 'immediate', 'true or false')
    const isFence = seen === undefined || Number.isSafeInteger(seen)
    requireOption(isFence, 'fence', 'the fence of the lease to free, as peek() shows it')
    const fence = seen ?? (await this.#peek(storedKey, nameOf(key, storedKey)))?.fence
    if (fence === undefined) return 'free'
    const { session, options: service } = this.#context
    const request = { key: storedKey, fence, immediate }
    const answer = await askStore(
      this.#context,
      `force the release of ${quoted(nameOf(key, storedKey))}`,
      async (call) => {
        const one = await session.locks.revoke(request, call)
        if (one.outcome === 'failed') throw one.error
        if (one.outcome === 'busy')
          throw new DriverFault('retry', 'The record was locked by other statements.')
        return one
      },
    )
    publish('leasehold:force-release', () => ({
      namespace: service.namespace,
      key: nameOf(key, storedKey),
      fence,
      outcome: answer.outcome,
    }))
    return answer.outcome
  }

  /**
   * Ends the service: schedulers on it stop without a drain, what waits rejects with a `ClosedError`, leases that are
   * still held are lost (`closed`) and given back, and nothing of ours is left: no timer, socket or subscription.
   * Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    const { dependents, pending } = this.#context
    pending.windUp()
    await dependents.close()
    this.#room.close()
    const tenures = [...this.#held]
    for (const { hold } of tenures) hold.lose('closed')
    await Promise.all(tenures.map((tenure) => tenure.release()))
    await pending.settled()
    this.#abandonments.close()
    await this.#wakeUps.close()
    await this.#context.close()
  }

  async #peek(storedKey: string, name: string): Promise<LeaseInfo | null> {
    const { locks } = this.#context.session
    const [record] = await askStore(this.#context, `look up ${quoted(name)}`, (call) =>
      locks.peek([storedKey], call),
    )
    return record ? toLeaseInfo(record) : null
  }

  #acquire(key: string, storedKey: string, options: ResolvedAcquireOptions): Promise<Lease | null> {
    const acquiring = this.#context.pending.track(this.#acquireWithin(key, storedKey, options))
    const { signal } = options
    return signal === null ? acquiring : this.#untilAborted(signal, acquiring)
  }

  async #acquireWithin(
    key: string,
    storedKey: string,
    options: ResolvedAcquireOptions,
  ): Promise<Lease | null> {
    const acquisition = new Acquisition(this.#desk, key, storedKey, options)
    let lease: Lease | null = null
    try {
      lease =
        options.waitMs > 0
          ? await this.#room.wait(storedKey, acquisition, options)
          : await acquisition.attemptOnce()
      return lease === null ? null : await this.#keep(lease)
    } finally {
      if (lease === null) acquisition.abandon()
    }
  }

  /** Rejects with the signal's reason at once when it aborts; a lease that arrives later is given back. */
  #untilAborted(signal: AbortSignal, acquiring: Promise<Lease | null>): Promise<Lease | null> {
    return new Promise((resolve, reject) => {
      const stopListening = this.#abortListeners.add(signal, () => {
        reject(signal.reason as Error)
        acquiring.then(
          (lease) => lease?.release(),
          () => {},
        )
      })
      // In the same step as the outcome: an abort right after it must not give back what the caller has got.
      const settle = (how: () => void): void => {
        stopListening()
        how()
      }
      acquiring.then(
        (lease) => settle(() => resolve(lease)),
        (error: unknown) => settle(() => reject(error)),
      )
    })
  }

  /** A lease that was granted while the service closed is given back. */
  async #keep(lease: Lease): Promise<Lease> {
    if (this.#closing !== undefined) {
      await lease.release()
      this.#assertOpen()
    }
    if (lease.isHeld()) this.#held.add(tenureOf(lease))
    return lease
  }

  #leaseEnded(tenure: Tenure): void {
    this.#held.delete(tenure)
    if (!this.#wakeUps.live) this.#room.wake(tenure.storedKey)
    this.#purgeNowAndThen()
  }

  /** Forgets old records of released keys, at most once per retention time, and only while keys are being released. */
  #purgeNowAndThen(): void {
    const { clock, retentionMs } = this.#context.options
    const now = clock.monotonic()
    if (this.#closing !== undefined || now - this.#lastPurge < Math.max(10_000, retentionMs / 2)) return
    this.#lastPurge = now
    void this.#purge().catch(() => {})
  }

  /** In bounded portions, until nothing old is left: keys that are used once must not pile up faster than they go. */
  async #purge(): Promise<void> {
    const { session, options } = this.#context
    const request = { retentionMs: options.retentionMs, limit: 1_000 }
    let purged: number
    do {
      purged = await askStore(this.#context, 'purge', (call) => session.locks.purge(request, call))
    } while (purged >= request.limit && this.#closing === undefined)
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) {
      throw new ClosedError('This LockService was closed. Make a new one, or close it after its last use.')
    }
  }
}

/** What an operator's target is called in messages and events. */
function nameOf(target: string | Pick<LeaseInfo, 'key'>, storedKey: string): string {
  return typeof target === 'string' ? target : storedKey
}
