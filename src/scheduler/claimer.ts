import type { Moment, Timer, TimerOptions } from '../core/clock.ts'
import { Deadline } from '../core/deadline.ts'
import { DriverFault } from '../core/errors.ts'
import { mintToken } from '../core/token.ts'
import type { ClaimAnswer, ClaimRequest, OrdersChange } from '../driver/task-driver.ts'
import { attendMs } from './attendance.ts'
import { Backoff } from './backoff.ts'
import type { Desk } from './desk.ts'
import { itemFault } from './item-fault.ts'
import { laneLabel, type Place } from './lanes.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/** Which slot to claim, and how. */
export interface Claim {
  readonly slot: number
  readonly after: number
  readonly gap: string
  readonly decide: 'run' | 'miss'
  /** With `miss`: why. */
  readonly reason: string
  /** For a manual run. */
  readonly orders?: OrdersChange
  /** Where what is granted is to run, if the task has lanes. */
  readonly place?: Place
  /** When the run that lapsed is retried, if not by the task's own rules. */
  readonly rules?: Pick<TaskDefinition, 'onCrash' | 'maxAttempts'>
}

/** An answer that decides something. */
export interface Claimed {
  readonly answer: Exclude<ClaimAnswer, { outcome: 'busy' | 'failed' }>
  readonly token: string
  readonly sentAt: Moment
  /** A grant of a manual run, also where it was another claim under this token that it is the answer to. */
  readonly isManual: boolean
}

/** A claim that was granted. */
export type Granted = Claimed & { readonly answer: { readonly outcome: 'granted' | 'takeover' } }

/**
 * Puts the claims of one task to the store, one at a time. While an answer is owed the token stays the same, whatever is
 * claimed meanwhile: if a claim whose answer was lost was granted, the next one is answered with that very run. Once that
 * run has lapsed it is answered with something else, and the claim after it, under a token of its own, may take over.
 */
export class Claimer {
  readonly #desk: Desk
  readonly #task: TaskDefinition
  readonly #holder: string
  /** The pause after this task was refused, which says nothing about the store. */
  readonly #refusal: Backoff
  readonly #stopped: Promise<void>
  #endPauses: () => void = () => {}
  #token: string | null = null
  /** The slots that were claimed under this token, and whether as manual runs: a grant may be the answer to any of it. */
  readonly #asked = new Map<number, boolean>()
  #timesAsked = 0
  #attempt = 1
  #busy = 0
  #fault: DriverFault | null = null

  constructor(desk: Desk, task: TaskDefinition) {
    const { context } = desk
    const { clock, random } = context.options
    this.#desk = desk
    this.#task = task
    this.#holder = this.#describeHolder(null)
    this.#refusal = new Backoff({ clock, random, shortestMs: 50, longestMs: 5_000 })
    this.#stopped = new Promise((resolve) => {
      this.#endPauses = resolve
    })
  }

  /** Whether an earlier claim may have been granted without our knowing it. */
  get isOwed(): boolean {
    return this.#token !== null
  }

  /** Why the last {@link ask} came to nothing, if it did. */
  get fault(): DriverFault | null {
    return this.#fault
  }

  /** Asks once. Null if there was no answer: after a pause, look again at what there is to claim. */
  async ask(claim: Claim): Promise<Claimed | null> {
    const { context, outage, verbs } = this.#desk
    const { clock } = context.options
    this.#fault = null
    const token = (this.#token ??= mintToken())
    this.#asked.set(claim.slot, claim.orders !== undefined)
    this.#timesAsked++
    const sent = await verbs.claims.submit(this.#request(claim, token), {
      timeoutMs: this.#task.lease.requestTimeoutMs,
      attempt: this.#attempt,
      lockedRows: this.#busy > 0 ? 'wait' : 'skip',
    })
    if (sent.kind === 'failed') {
      this.#attempt = 2
      this.#fault = sent.fault
      reportError(context, sent.fault, this.#task.name)
      await this.#unlessStopped(outage.wait())
      return null
    }
    outage.reset()
    const { answer, sentAt } = sent
    if (answer.outcome === 'busy') {
      this.#busy++
      if (this.#busy > 2) await this.rest()
      return null
    }
    if (answer.outcome === 'failed') {
      this.#fault = itemFault(answer.error)
      reportError(context, answer.error, this.#task.name)
      await this.rest()
      return null
    }
    const isGrant = answer.outcome === 'granted' || answer.outcome === 'takeover'
    if (isGrant && new Deadline(clock, sentAt, answer.remainingMs).remainingMs <= 0) {
      // Nobody may trust it; asked again under its token, it is armed again.
      const late = 'The grant of a slot arrived after its own deadline. It is asked for again.'
      reportError(context, new DriverFault('unknown', late), this.#task.name)
      return null
    }
    const isManual = isGrant && this.#isManual(answer)
    this.#token = null
    this.#asked.clear()
    this.#timesAsked = 0
    this.#attempt = 1
    this.#busy = 0
    return { answer, token, sentAt, isManual }
  }

  /** A takeover is the run of somebody else, unless it is granted again: then its attempt is a later one of its slot. */
  #isManual({ slot, outcome }: { readonly slot: number; readonly outcome: string }): boolean {
    if (outcome === 'takeover' && this.#timesAsked === 1) return false
    return this.#asked.get(slot) === true
  }

  /** A pause, longer with each one before {@link refresh}: the store answers, but nothing comes of it. */
  async rest(): Promise<void> {
    await this.#unlessStopped(this.#refusal.wait())
  }

  /** Something came of it. */
  refresh(): void {
    this.#refusal.reset()
  }

  /** A pause of this length. */
  async pause(milliseconds: number, options?: TimerOptions): Promise<void> {
    let timer: Timer | undefined
    const { clock } = this.#desk.context.options
    await this.#unlessStopped(
      new Promise<void>((resolve) => {
        timer = clock.setTimer(milliseconds, resolve, options)
      }),
    )
    timer?.cancel()
  }

  /** Ends all pauses, now and later. */
  stop(): void {
    this.#refusal.end()
    this.#endPauses()
  }

  #describeHolder(label: string | null): string {
    const { name, storedName } = this.#task
    return this.#desk.context.describeHolder({ label, key: storedName === name ? null : name })
  }

  #unlessStopped(pause: Promise<void>): Promise<void> {
    return Promise.race([pause, this.#stopped])
  }

  #request(claim: Claim, token: string): ClaimRequest {
    const { slot, after, gap, decide, reason, orders, place, rules = this.#task } = claim
    const { storedName, schedule, text, lease, overlap } = this.#task
    const label = place === undefined ? null : laneLabel(place)
    return {
      task: storedName,
      slot,
      after,
      gap,
      fingerprint: schedule.fingerprint,
      definition: text,
      attendMs,
      token,
      ttlMs: lease.ttlMs,
      holder: label === null ? this.#holder : this.#describeHolder(label),
      overlap: overlap === 'skip' ? 'skip' : 'queue',
      onCrash: rules.onCrash,
      maxAttempts: rules.maxAttempts,
      decide,
      reason,
      orders: orders ?? null,
    }
  }
}
