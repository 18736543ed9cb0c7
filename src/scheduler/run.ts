import { publish, type LeaseholdEvents } from '../core/channels.ts'
import type { Moment, Timer } from '../core/clock.ts'
import { LeaseLostError, type LossReason, RunStoppedError } from '../core/errors.ts'
import { Hold, type HoldOwner } from '../core/hold.ts'
import type { CompleteRequest } from '../driver/task-driver.ts'
import { Completion, type Recorded } from './completion.ts'
import type { Desk } from './desk.ts'
import { errorText } from './error-text.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'
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
}

/** Why a run is asked to stop. */
export interface StopOrder {
  readonly reason: string
  /** Whether a run that was cut short is left to be retried, where the task wants retries. */
  readonly mayRetry: boolean
}

/** How long a run that was asked to stop is still kept alive. */
export const stopGraceMs = 1_000

type Outcome = Pick<CompleteRequest, 'outcome' | 'error'> & { readonly cause?: unknown }
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

  /** @param onLost called once if the lease is lost while the handler runs */
  constructor(desk: Desk, task: TaskDefinition, grant: RunGrant, onLost: () => void) {
    const { options, heartbeat, watch } = desk.context
    this.grant = grant
    this.#desk = desk
    this.#task = task
    this.#onLost = onLost
    this.#completion = new Completion(desk, task)
    this.#startedAt = options.clock.monotonic()
    this.#hold = new Hold({
      clock: options.clock,
      heartbeat,
      watch,
      owner: this.#owner(),
      sentAt: grant.sentAt,
      remainingMs: grant.remainingMs,
      ttlMs: task.lease.ttlMs,
      heartbeatMs: task.lease.heartbeatMs,
      maxLifetimeMs: task.lease.maxLifetimeMs,
      requestTimeoutMs: task.lease.requestTimeoutMs,
    })
  }

  /** This node trusts its lease. */
  get isHeld(): boolean {
    return this.#hold.isHeld
  }

  /**
   * Calls the handler. Resolves when it has settled and its outcome is recorded (true), or never will be. Never rejects.
   */
  async start(handler: TaskHandler): Promise<boolean> {
    const { attempt, latenessMs } = this.grant
    publish('leasehold:run-start', () => ({ ...this.#event(), takeover: attempt > 1, latenessMs }))
    const outcome = await this.#execute(handler)
    this.#graceTimer?.cancel()
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
    const recorded = await this.#record(outcome)
    this.#hold.end()
    this.#ended(recorded === 'completed' ? outcome.outcome : recorded, outcome.cause)
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
    try {
      await handler(this.#view())
      return { outcome: 'succeeded', error: null }
    } catch (error) {
      const outcome = this.#stop === undefined ? 'failed' : 'abandoned'
      return { outcome, error: errorText(error), cause: error }
    }
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
    this.#abandonment = this.#record({ outcome: 'abandoned', error: errorText(why) })
    void this.#abandonment.then((recorded) =>
      this.#ended(recorded === 'completed' ? 'abandoned' : recorded, why),
    )
  }

  #record({ outcome, error }: Outcome): Promise<Recorded> {
    const { slot, attempt, fence } = this.grant
    const task = this.#task.storedName
    return this.#completion.record({ task, slot, attempt, fence, outcome, reason: null, error })
  }

  #isLeftToRetry(mayRetry: boolean): boolean {
    return mayRetry && this.#task.onCrash === 'retry' && this.grant.attempt < this.#task.maxAttempts
  }

  #view(): TaskRun {
    const hold = this.#hold
    const { slot, attempt, fence } = this.grant
    return {
      task: this.#task.name,
      slot: new Date(slot),
      attempt,
      fence,
      get signal() {
        return hold.signal
      },
      get remainingMs() {
        return hold.remainingMs
      },
      isHeld: () => hold.isHeld,
      assertHeld: () => {
        if (!hold.isHeld) throw this.#lossError(hold.lossReason ?? 'released')
      },
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
      onStopRequested: (reason) => this.stop({ reason, mayRetry: false }),
    }
  }

  #lossError(reason: LossReason): LeaseLostError {
    return new LeaseLostError({ key: this.#task.name, fence: this.grant.fence, reason })
  }

  #ended(outcome: EndOutcome, error: unknown): void {
    const durationMs = this.#desk.context.options.clock.monotonic() - this.#startedAt
    publish('leasehold:run-end', () => ({ ...this.#event(), outcome, durationMs, error }))
  }

  #event(): { namespace: string; task: string; slot: number; attempt: number; fence: number } {
    const { slot, attempt, fence } = this.grant
    const { namespace } = this.#desk.context.options
    return { namespace, task: this.#task.name, slot, attempt, fence }
  }
}
