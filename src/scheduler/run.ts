import { runInside } from '../core/ambient.ts'
import { publish, type LeaseholdEvents } from '../core/channels.ts'
import type { Moment, Timer } from '../core/clock.ts'
import { formatDuration } from '../core/duration.ts'
import { LeaseLostError, type LossReason, quoted, RunStoppedError } from '../core/errors.ts'
import { Hold, type HoldOwner } from '../core/hold.ts'
import type { Holder } from '../core/holder.ts'
import type { CompleteRequest } from '../driver/task-driver.ts'
import type { Granted } from './claimer.ts'
import { Completion, type Recorded } from './completion.ts'
import type { Desk } from './desk.ts'
import { errorText } from './error-text.ts'
import { handedOverTo } from './lanes.ts'
import { LeftOut } from './left-out.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition, TaskLock } from './task-options.ts'
import type { TaskHandler, TaskRun } from './task-run.ts'

/** A granted claim. */
export interface RunGrant {
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  readonly token: string
  /** Just before the claim that was granted was sent. */
  readonly sentAt: Moment
  readonly remainingMs: number
  /** How long after its slot it was granted. */
  readonly latenessMs: number
  /** An operator asked for it. */
  readonly isManual: boolean
  /** It only hands its slot over: nobody is told of it. */
  readonly isHandOver: boolean
}

/** What a granted claim gives its run. */
export function runGrant({ answer, token, sentAt, isManual }: Granted, isHandOver: boolean): RunGrant {
  const { slot, attempt, fence, remainingMs, now } = answer
  return { slot, attempt, fence, token, sentAt, remainingMs, latenessMs: now - slot, isManual, isHandOver }
}

/** Why a run is asked to stop. */
export interface StopOrder {
  /** What is recorded beside `abandoned`. */
  readonly kind: 'cancelled' | 'stopped' | 'timeout' | 'lock'
  /** The same for people. */
  readonly reason: string
  /** Whether a run that was cut short is left to be retried, where the task wants retries. */
  readonly mayRetry: boolean
}

/** How long a run that was asked to stop is still kept alive. */
export const stopGraceMs = 1_000

type Outcome = Pick<CompleteRequest, 'outcome' | 'reason' | 'error'> & { readonly cause?: unknown }
type EndOutcome = LeaseholdEvents['leasehold:run-end']['outcome']

/**
 * One execution of a slot on this node, from its grant until its outcome is recorded.
 *
 * Its lease is given up only when the handler has settled and the store has confirmed the outcome. A handler that does
 * not settle in time after it was asked to stop is abandoned: its lease is renewed no more, ends at its deadline, and
 * only then is the outcome recorded.
 */
export class Run {
  readonly grant: RunGrant
  readonly #desk: Desk
  readonly #task: TaskDefinition
  readonly #onLost: () => void
  readonly #hold: Hold
  readonly #completion: Completion
  readonly #startedAt: number
  #hasSettled = false
  #isClosed = false
  #abandonment: Promise<Recorded> | undefined
  #stop: StopOrder | undefined
  #graceTimer: Timer | undefined
  #timeoutTimer: Timer | undefined

  /** @param onLost called once if the lease is lost while the handler runs */
  constructor(desk: Desk, task: TaskDefinition, grant: RunGrant, onLost: () => void) {
    this.grant = grant
    this.#desk = desk
    this.#task = task
    this.#onLost = onLost
    this.#completion = new Completion(desk, task)
    this.#startedAt = desk.context.options.clock.monotonic()
    this.#hold = new Hold({ ...grant, context: desk.context, owner: this.#owner(), lease: task.lease })
  }

  /** This node trusts its lease. */
  get isHeld(): boolean {
    return this.#hold.isHeld
  }

  /**
   * Calls the handler. Resolves when it has settled and its outcome is recorded (true), or never will be. Never rejects.
   */
  async start(handler: TaskHandler): Promise<boolean> {
    const outcome = await this.#execute(handler)
    this.#graceTimer?.cancel()
    this.#timeoutTimer?.cancel()
    if (this.#abandonment !== undefined) return (await this.#abandonment) === 'completed'
    // The service is closed: nothing is sent any more, whatever became of the lease before.
    if (this.#isClosed) return false
    this.#hasSettled = true
    if (outcome.outcome === 'abandoned' && this.#isLeftToRetry(this.#stop?.mayRetry === true)) {
      // Cut short, and to be done all the same: the lease lapses, and a live node makes the next attempt.
      this.#hold.end()
      this.#ended('abandoned', outcome.cause)
      return false
    }
    this.#hold.beginReturn()
    const recorded = await this.#record(outcome)
    this.#hold.end()
    if (outcome.outcome === 'skipped') this.#leftOut(outcome)
    else this.#ended(recorded === 'completed' ? outcome.outcome : recorded, outcome.cause)
    return recorded === 'completed'
  }

  /** Aborts the signal; a handler that has not settled after a grace is abandoned. */
  stop(order: StopOrder): void {
    if (this.#hasSettled || this.#stop !== undefined) return
    this.#stop = order
    this.#hold.abort(new RunStoppedError(this.#task.name, order.reason))
    const { clock } = this.#desk.context.options
    this.#graceTimer = clock.setTimer(stopGraceMs, () => this.#hold.stopRenewing())
  }

  /** The node stops: nothing is renewed any more, an outcome that the store did not confirm is not recorded. */
  giveUp(): void {
    this.#completion.giveUp()
    this.#graceTimer?.cancel()
    this.#timeoutTimer?.cancel()
    if (this.#hasSettled) this.#hold.end()
    else this.#hold.stopRenewing()
  }

  /** The service closes: nothing of this run is left, except a handler that does not end. */
  close(): void {
    this.#isClosed = true
    this.giveUp()
    this.#hold.lose('closed')
  }

  async #execute(handler: TaskHandler): Promise<Outcome> {
    const { lock } = this.#task
    try {
      if (lock !== null) return await this.#executeUnder(lock, handler)
      const result = await this.#call(handler)
      if (result instanceof LeftOut) return { outcome: 'skipped', reason: result.reason, error: result.error }
      return { outcome: 'succeeded', reason: null, error: null }
    } catch (error) {
      const told = { error: errorText(error), cause: error }
      if (this.#stop === undefined) return { outcome: 'failed', reason: null, ...told }
      return { outcome: 'abandoned', reason: this.#stop.kind, ...told }
    }
  }

  /** The lock is taken under the task's own lease, and given back before it whatever the handler does. */
  async #executeUnder({ key, options }: TaskLock, handler: TaskHandler): Promise<Outcome> {
    const { locks } = this.#desk
    const label = this.#task.name.slice(0, 200)
    const lease = await locks.acquire(key, { ...options, label, signal: this.#hold.signal })
    if (lease === null) {
      const holder = (await locks.peek(key).catch(() => null))?.holder
      return { outcome: 'skipped', reason: 'lock', error: errorText(heldBy(key, holder)) }
    }
    const onLost = (): void => {
      this.stop({ kind: 'lock', reason: `it lost its lock ${quoted(key)}`, mayRetry: true })
    }
    lease.signal.addEventListener('abort', onLost)
    try {
      await runInside(lease, () => this.#call(handler))
    } finally {
      lease.signal.removeEventListener('abort', onLost)
      await lease.release()
    }
    return { outcome: 'succeeded', reason: null, error: null }
  }

  async #call(handler: TaskHandler): Promise<unknown> {
    const { attempt, latenessMs, isHandOver } = this.grant
    if (isHandOver) return handler(this.#view())
    const { timeoutMs } = this.#task
    publish('leasehold:run-start', () => ({ ...this.#event(), takeover: attempt > 1, latenessMs }))
    if (timeoutMs !== null) {
      const reason = `it took longer than its timeout of ${formatDuration(timeoutMs)}`
      const cutOff = (): void => this.stop({ kind: 'timeout', reason, mayRetry: false })
      this.#timeoutTimer = this.#desk.context.options.clock.setTimer(timeoutMs, cutOff)
    }
    return handler(this.#view())
  }

  #lost(reason: LossReason): void {
    if (this.#hasSettled) return
    this.#onLost()
    const error = this.#lossError(reason)
    const isAbandoned = reason === 'max-lifetime' || (reason === 'expired' && this.#stop !== undefined)
    if (!isAbandoned || this.#isLeftToRetry(this.#stop?.mayRetry ?? true)) {
      this.#ended('lost', error)
      return
    }
    const why = this.#stop === undefined ? error : new RunStoppedError(this.#task.name, this.#stop.reason)
    const kind = this.#stop?.kind ?? 'max-lifetime'
    this.#abandonment = this.#record({ outcome: 'abandoned', reason: kind, error: errorText(why) })
    void this.#abandonment.then((recorded) =>
      this.#ended(recorded === 'completed' ? 'abandoned' : recorded, why),
    )
  }

  #record({ outcome, reason, error }: Outcome): Promise<Recorded> {
    const { slot, attempt, fence } = this.grant
    const task = this.#task.storedName
    return this.#completion.record({ task, slot, attempt, fence, outcome, reason, error })
  }

  #isLeftToRetry(mayRetry: boolean): boolean {
    return mayRetry && this.#task.onCrash === 'retry' && this.grant.attempt < this.#task.maxAttempts
  }

  #view(): TaskRun {
    const hold = this.#hold
    const { slot, attempt, fence, isManual } = this.grant
    return {
      task: this.#task.name,
      slot: new Date(slot),
      isManual,
      attempt,
      fence,
      get signal() {
        return hold.signal
      },
      get remainingMs() {
        return hold.remainingMs
      },
      isHeld: () => hold.isHeld,
      assertHeld: () => hold.assertHeld(),
    }
  }

  #owner(): HoldOwner {
    const { context, verbs } = this.#desk
    const { storedName, name } = this.#task
    const { token } = this.grant
    return {
      sendRenewal: (ttlMs, item) => verbs.refreshes.submit({ task: storedName, token, ttlMs }, item),
      lossError: (reason) => this.#lossError(reason),
      onRenewed: () => {},
      onRenewalFailed: (_attempt, error) => reportError(context, error, name),
      onLost: (reason) => this.#lost(reason),
      onLifetimeReached: () => {},
      onStopRequested: (reason) => this.stop({ kind: 'cancelled', reason, mayRetry: false }),
    }
  }

  #lossError(reason: LossReason): LeaseLostError {
    return new LeaseLostError({ key: this.#task.name, fence: this.grant.fence, reason })
  }

  #ended(outcome: EndOutcome, error: unknown): void {
    if (this.grant.isHandOver) return
    const durationMs = this.#desk.context.options.clock.monotonic() - this.#startedAt
    publish('leasehold:run-end', () => ({ ...this.#event(), outcome, durationMs, error }))
  }

  /** Another holds its lock, or its slot was handed over. */
  #leftOut({ reason, error }: Outcome): void {
    if (handedOverTo(reason) !== null) return
    const { namespace, task, slot } = this.#event()
    const told = { namespace, task, slot, outcome: 'skipped', reason: reason ?? undefined, error }
    publish('leasehold:slot', () => told)
  }

  #event(): { namespace: string; task: string; slot: number; attempt: number; fence: number } {
    const { slot, attempt, fence } = this.grant
    const { namespace } = this.#desk.context.options
    return { namespace, task: this.#task.name, slot, attempt, fence }
  }
}

function heldBy(key: string, holder: Holder | undefined): string {
  const name = quoted(key)
  if (holder === undefined) return `The lock ${name} was held by somebody who has given it back meanwhile.`
  const { label, host, pid } = holder
  return `The lock ${name} is held by ${label === undefined ? '' : `${quoted(label)}, `}host ${host}, process ${pid}.`
}
