import { publish } from '../core/channels.ts'
import { ClosedError, DriverFault, isFinal, quoted } from '../core/errors.ts'
import { storeError } from '../core/store-call.ts'
import type { Attendee } from './attendance.ts'
import { Claimer, type Claimed, type Granted } from './claimer.ts'
import type { Desk } from './desk.ts'
import type { Draining } from './drain.ts'
import { leaveOut } from './leave-out.ts'
import { gapReason } from './policies.ts'
import { Registration, type Registered } from './registration.ts'
import { Run, runGrant, type StopOrder } from './run.ts'
import { Supersession } from './supersession.ts'
import type { TaskDefinition } from './task-options.ts'
import type { TaskHandler } from './task-run.ts'
import { unsafeFence } from './unsafe-fence.ts'

/** The longest sleep until a slot that is still to come: the store's time is estimated better meanwhile. */
const longestSleep = 60_000

/**
 * A task that something else fires, such as the timers of another scheduler: it claims the slot that it is told, when it
 * is told.
 */
export class FiredTask implements Attendee, Draining {
  readonly definition: TaskDefinition
  readonly #desk: Desk
  readonly #claimer: Claimer
  readonly #registration: Registration
  readonly #supersession: Supersession
  readonly #runs = new Map<Run, Promise<boolean>>()
  #mark: number | null = null
  #isStopping = false
  #isCutShort = false
  /** The claims of this process, one after the other. */
  #claiming: Promise<unknown> = Promise.resolve()

  constructor(desk: Desk, definition: TaskDefinition) {
    this.#desk = desk
    this.definition = definition
    this.#claimer = new Claimer(desk, definition)
    this.#registration = new Registration(desk, definition)
    this.#supersession = new Supersession(desk, definition.name)
  }

  /** No handler of it runs. */
  get isAtRest(): boolean {
    return this.#runs.size === 0
  }

  /** Tells the store that a node with this schedule is there; not before the first slot is known. */
  register(): Promise<DriverFault | null> {
    return this.#mark === null ? Promise.resolve(null) : this.#register(null)
  }

  /** Makes the task known before its first fire: slots up to now are not to be had. */
  announce(): Promise<DriverFault | null> {
    return this.#register(null)
  }

  /**
   * Claims a slot, and runs the handler if it is granted.
   *
   * @returns whether it ran here
   * @throws what the handler throws; StoreUnavailableError, StoreUnusableError, ClosedError if it is stopped meanwhile
   */
  async fire(slot: number, handler: TaskHandler, startDeadlineMs: number): Promise<boolean> {
    if (!(await this.#hasCome(slot))) throw stopped(this.definition.name)
    const claimed = this.#claiming.then(() => this.#claim(slot, startDeadlineMs))
    this.#claiming = claimed.catch(() => {})
    const granted = await claimed
    if (granted === null) return false
    await this.#run(granted, handler)
    return true
  }

  async drain(): Promise<void> {
    this.#isStopping = true
    this.#claimer.stop()
    await this.#claiming
    await Promise.all(this.#runs.values())
  }

  cutShort(order: StopOrder): void {
    this.#isCutShort = true
    for (const run of this.#runs.keys()) run.stop(order)
  }

  giveUp(): void {
    for (const run of this.#runs.keys()) run.giveUp()
  }

  /** Nothing of it is left, except handlers that do not end. */
  close(): void {
    for (const run of this.#runs.keys()) run.close()
  }

  async #register(since: number | null): Promise<DriverFault | null> {
    const answer = await this.#registration.tell(since)
    if (answer instanceof DriverFault) return answer
    this.#learn(answer)
    return null
  }

  /** Null if the slot is not for this node to run. */
  async #claim(slot: number, startDeadlineMs: number): Promise<Granted | null> {
    const { clock } = this.#desk.context.options
    const giveUpAt = clock.monotonic() + startDeadlineMs
    const checkTime = (fault: DriverFault): void => {
      if (isFinal(fault) || clock.monotonic() >= giveUpAt)
        throw storeError(`claim a slot of ${quoted(this.definition.name)}`, fault)
    }
    for (;;) {
      if (this.#isStopping) throw stopped(this.definition.name)
      if (this.#mark === null) {
        const fault = await this.#register(slot - 1)
        if (fault === null) continue
        checkTime(fault)
        await this.#claimer.rest()
        continue
      }
      if (this.#supersession.isSuperseded) return this.#left(slot, 'superseded')
      if (slot <= this.#mark) return this.#left(slot, 'decided')
      const claimed = await this.#claimer.ask({
        slot,
        after: this.#mark,
        gap: gapReason,
        decide: 'run',
        reason: '',
      })
      if (claimed === null) {
        checkTime(this.#claimer.fault ?? new DriverFault('unknown', 'The store gave no answer that helps.'))
        continue
      }
      const granted = await this.#answered(slot, claimed)
      if (granted !== undefined) return granted
    }
  }

  /** Undefined: ask again. */
  async #answered(slot: number, claimed: Claimed): Promise<Granted | null | undefined> {
    const { answer, sentAt } = claimed
    this.#desk.storeTime.note(sentAt, answer.now)
    this.#learn(answer)
    switch (answer.outcome) {
      case 'granted':
      case 'takeover':
        return this.#accept(slot, { ...claimed, answer })
      case 'early':
        await this.#claimer.pause(Math.min(slot - answer.now, 1_000), { keepAlive: true })
        return undefined
      // The store has lost the task, and knows it again now: what has come by then is decided.
      case 'unregistered':
      case 'behind':
        this.#claimer.refresh()
        return undefined
      case 'held':
        await this.#claimer.rest()
        return undefined
      case 'skipped':
        return this.#left(slot, 'skipped', answer.reason)
      default:
        return this.#left(slot, answer.outcome)
    }
  }

  #accept(slot: number, granted: Granted): Granted | undefined {
    const { answer } = granted
    this.#claimer.refresh()
    this.#tell(answer.slot, answer.outcome)
    if (!this.#desk.fences.accept(this.definition.storedName, answer.fence)) {
      leaveOut(this.#desk, this.definition, answer, 'fence')
      throw unsafeFence(this.definition.name, answer.fence)
    }
    if (this.#isCutShort) {
      leaveOut(this.#desk, this.definition, answer, 'stopped')
      throw stopped(this.definition.name)
    }
    if (answer.slot === slot) return granted
    // An earlier call claimed it, and was told that the store does not answer: nobody is there to run it any more.
    leaveOut(this.#desk, this.definition, answer, 'unanswered')
    return undefined
  }

  async #run(granted: Granted, handler: TaskHandler): Promise<void> {
    const run = new Run(this.#desk, this.definition, runGrant(granted, false), () => {})
    let failure: { readonly error: unknown } | undefined
    const running = run.start(async (view) => {
      try {
        await handler(view)
      } catch (error) {
        failure = { error }
        throw error
      }
    })
    this.#runs.set(run, running)
    await running
    this.#runs.delete(run)
    if (failure !== undefined) throw failure.error
  }

  #learn(answer: Registered | Claimed['answer']): void {
    this.#mark = answer.mark
    this.#supersession.learn(answer)
  }

  #left(slot: number, outcome: string, reason?: string): null {
    this.#claimer.refresh()
    this.#tell(slot, outcome, reason)
    return null
  }

  #tell(slot: number, outcome: string, reason?: string): void {
    publish('leasehold:slot', () => ({
      namespace: this.#desk.context.options.namespace,
      task: this.definition.name,
      slot,
      outcome,
      reason,
    }))
  }

  /** Waits for a slot that has not come on the store's clock. False if it was stopped meanwhile. */
  async #hasCome(slot: number): Promise<boolean> {
    const { storeTime } = this.#desk
    while (!this.#isStopping && storeTime.isKnown) {
      const inMs = slot + storeTime.wakeLateMs - storeTime.now()
      if (inMs <= 0) break
      await this.#claimer.pause(Math.min(Math.ceil(inMs), longestSleep), { keepAlive: true })
    }
    return !this.#isStopping
  }
}

function stopped(name: string): ClosedError {
  return new ClosedError(`${quoted(name)} was fired while this ScheduledTaskStore stops: it did not run.`)
}
