import { runOutside } from '../core/ambient.ts'
import { DriverFault } from '../core/errors.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import type { AgendaItem } from './agenda.ts'
import type { Attendee } from './attendance.ts'
import { type Claim, Claimer, type Granted } from './claimer.ts'
import type { Desk } from './desk.ts'
import type { Draining } from './drain.ts'
import { type Lanes, type LaneTask, type Offered, type Place, placeOf } from './lanes.ts'
import { LaneOffer } from './lane-offer.ts'
import type { LapseWatched } from './lapse-watch.ts'
import { leaveOut } from './leave-out.ts'
import { nextOrderedSlot } from './orders.ts'
import { overlapEnd } from './overlaps.ts'
import { dueTime, gapReason, lateReason, manualReason, overtakenReason, planSlot } from './policies.ts'
import { Registration } from './registration.ts'
import { requestStop } from './request-stop.ts'
import { reportError } from './report-error.ts'
import { reportLoss } from './report-loss.ts'
import { Run, runGrant, type StopOrder } from './run.ts'
import { Supersession } from './supersession.ts'
import type { TaskDefinition } from './task-options.ts'
import type { TaskHandler } from './task-run.ts'
import { type SeenRun, TaskView } from './task-view.ts'
import { tellDecision } from './tell-decision.ts'
import { unsafeFence } from './unsafe-fence.ts'

/** A retry goes first: the slot that was due when it was taken over waits for its end, until the next one is due. */
interface Deferral {
  readonly run: Run
  readonly slot: number
}

/**
 * One task on this node: claims what is due, and what has lapsed, until the mark has caught up with the store's time;
 * then it sleeps until the agenda, the lapse watch, an answer or the end of a run wakes it.
 */
export class Task implements AgendaItem, LapseWatched, Attendee, Draining, LaneTask {
  readonly definition: TaskDefinition
  readonly #desk: Desk
  readonly #handler: TaskHandler
  /** Where its slots run, if runs may overlap. */
  readonly #lanes: Lanes | null
  readonly #claimer: Claimer
  readonly #registration: Registration
  readonly #supersession: Supersession
  readonly #runs = new Map<Run, Promise<void>>()
  readonly #view = new TaskView()
  #dueAt = Infinity
  #lapsesAt = Infinity
  #state: 'waiting' | 'claiming' | 'draining' | 'drained' = 'waiting'
  #deferral: Deferral | null = null
  /** The slot that waits for the end of an earlier run (`overlap: 'queue'`); surely, if the store said so. */
  #queued: { readonly slot: number; readonly isSure: boolean } | null = null
  #mustLook = false
  #working: Promise<void> | null = null
  /** As a lane: the slot that was handed to it. */
  readonly #offer = new LaneOffer()

  constructor(desk: Desk, definition: TaskDefinition, handler: TaskHandler, lanes: Lanes | null = null) {
    this.#desk = desk
    this.definition = definition
    this.#handler = handler
    this.#lanes = lanes
    this.#claimer = new Claimer(desk, definition)
    this.#registration = new Registration(desk, definition)
    this.#supersession = new Supersession(desk, definition.name)
  }

  get storedName(): string {
    return this.definition.storedName
  }

  get dueAt(): number {
    return this.#dueAt
  }

  get lapsesAt(): number {
    return this.#lapsesAt
  }

  /** No handler of it runs. */
  get isAtRest(): boolean {
    return this.#runs.size === 0 && this.#laneTasks.every((lane) => lane.isAtRest)
  }

  /** Tells the store that a node with this schedule is there, and learns from the answer. */
  async register(): Promise<DriverFault | null> {
    const faults = await Promise.all([this.#register(), ...this.#laneTasks.map((lane) => lane.register())])
    return faults.find((fault) => fault !== null) ?? null
  }

  async #register(): Promise<DriverFault | null> {
    // A lane has no slots of its own: whatever is handed to it is still to be had.
    const answer = await this.#registration.tell(this.definition.isLane ? 0 : null)
    if (answer instanceof DriverFault) return answer
    this.#view.overhear(answer, this.#desk.context.options.clock.monotonic())
    this.#supersession.learn(answer)
    this.wake()
    return null
  }

  /** From here on slots are claimed. */
  begin(): void {
    if (this.#state !== 'waiting') return
    this.#state = 'claiming'
    for (const lane of this.#laneTasks) lane.begin()
    this.wake()
  }

  /** The agenda: a slot has come due. */
  due(): void {
    this.#dueAt = Infinity
    this.wake()
  }

  /** The lapse watch: what the store says of the run elsewhere. */
  inspected(record: TaskRecord | null): void {
    this.#lapsesAt = Infinity
    const before = this.#view.running
    const now = this.#desk.context.options.clock.monotonic()
    if (record !== null) this.#view.overhear(record, now)
    if (before !== null && before === this.#view.running && before.lapsesAt <= now) {
      // The store has forgotten the task, or gone back in time: what it says now counts, or it would be asked in a loop.
      if (record === null) this.#view.forgetRun(before.fence)
      else this.#view.learn(record, now)
    }
    this.wake()
  }

  /** Looks for something to claim, unless that is being done. */
  wake(): void {
    if (this.#working !== null || this.#state !== 'claiming') return
    const claim = this.#nextClaim()
    // Looking may have found out that a run of ours is lost, which wakes as well.
    if (claim !== null) this.#working ??= this.#work(claim)
  }

  /** Claims nothing more. Resolves when the last claim is answered and all runs have ended. */
  async drain(): Promise<void> {
    if (this.#state !== 'drained') this.#state = 'draining'
    this.#claimer.stop()
    await this.#working
    await Promise.all(this.#runs.values())
    // What is handed over until then still begins.
    await Promise.all(this.#laneTasks.map((lane) => lane.drain()))
  }

  /** As a lane: claims a slot that was handed to it. */
  offer(slot: number, signal: AbortSignal): Promise<Offered> {
    return this.#offer.make(slot, signal, () => this.wake())
  }

  /** The drain limit is reached: what runs is asked to stop, and a grant that comes in now is not begun. */
  cutShort(order: StopOrder): void {
    this.#state = 'drained'
    for (const run of this.#runs.keys()) run.stop(order)
    for (const lane of this.#laneTasks) lane.cutShort(order)
  }

  /** Nothing is renewed or recorded any more. */
  giveUp(): void {
    for (const run of this.#runs.keys()) run.giveUp()
    for (const lane of this.#laneTasks) lane.giveUp()
  }

  /** Nothing of it is left, except handlers that do not end. */
  close(): void {
    for (const run of this.#runs.keys()) run.close()
    for (const lane of this.#laneTasks) lane.close()
  }

  async #work(first: Claim): Promise<void> {
    let claim: Claim | null = first
    while (claim !== null && this.#state === 'claiming') {
      try {
        const ready = await this.#withLane(claim)
        if (ready !== null) await this.#claim(ready)
      } catch (error) {
        // Nothing is known to get here; a task that stood still without a word would be the worst of all ends.
        reportError(this.#desk.context, error, this.definition.name)
        await this.#claimer.rest()
      }
      claim = this.#nextClaim()
    }
    this.#working = null
  }

  /** What there is to claim now; if nothing, it will be woken when there is. */
  #nextClaim(): Claim | null {
    const { agenda, lapses, storeTime } = this.#desk
    const { mark, running, isPaused } = this.#view
    this.#dueAt = Infinity
    this.#lapsesAt = Infinity
    this.#mustLook = false
    if (mark === null || this.#supersession.isSuperseded || !storeTime.isKnown) return null
    const slotClaim = this.#nextSlotClaim(mark, storeTime.now())
    if (slotClaim !== null) return slotClaim
    const { slot } = this.#offer
    if (slot !== null) return { slot, after: mark, decide: 'run', gap: '', reason: '' }
    agenda.watch(this)
    if (running !== null && !this.#isOwn(running)) {
      // Takes over or clears the lapsed run, and decides nothing: the mark is decided.
      const lapseClaim = this.#lapseClaim(mark, running)
      if (this.#mustLook) this.#lapsesAt = this.#desk.context.options.clock.monotonic()
      else if (!running.hasLapsed) this.#lapsesAt = running.lapsesAt
      else if (!isPaused || running.isCancelled || !isRetryDue(running, lapseClaim.rules ?? this.definition))
        return lapseClaim
    }
    lapses.watch(this)
    return running === null ? this.#nextOrderClaim(mark) : null
  }

  /** A manual run that an operator has asked for; whatever is due goes first. */
  #nextOrderClaim(mark: number): Claim | null {
    if (this.#view.orders === '') return null
    const { schedule } = this.definition
    const { slot, decide, by, orders } = nextOrderedSlot(schedule, this.#view.orders, mark)
    return { slot, after: mark, decide, gap: by, reason: manualReason, orders }
  }

  /** Sets the time of the next slot, unless there is one to claim now. */
  #nextSlotClaim(mark: number, now: number): Claim | null {
    const { schedule } = this.definition
    const plan = planSlot(schedule, this.definition, mark, now, this.storedName)
    if (plan.kind === 'wait') {
      this.#dueAt = plan.until
      return null
    }
    const { slot, decide } = plan
    const gap = this.#gapBefore(slot, mark)
    const claim: Claim = { slot, after: mark, decide, gap, reason: lateReason }
    if (this.definition.overlap !== 'skip') return this.#queueClaim(claim)
    const deferral = this.#deferral
    if (deferral === null || deferral.slot <= mark) return claim
    if (slot > deferral.slot)
      return { ...claim, slot: deferral.slot, decide: 'miss', reason: overtakenReason }
    if (decide === 'miss' || !this.#isUnderWay(deferral, now)) return claim
    const { catchUp, startDeadlineMs } = this.definition
    const deadline = catchUp === 'none' ? this.#dueTime(slot) + startDeadlineMs + 1 : Infinity
    this.#dueAt = Math.min(deadline, this.#dueTime(schedule.next(slot)))
    return null
  }

  /** Even a run that lost its lease is waited for until the next slot, since the store may still count it. */
  #isUnderWay({ run, slot }: Deferral, now: number): boolean {
    return this.#runs.has(run) && (run.isHeld || this.definition.schedule.next(slot) > now)
  }

  /** A slot that found an earlier run under way is asked for again when that has ended: then it is not too late. */
  #queueClaim(claim: Claim): Claim | null {
    const { running, busyUntil } = this.#view
    const { slot } = claim
    const isQueued = this.#queued?.slot === slot
    const hasMet = isQueued
      ? this.#queued?.isSure === true || slot <= busyUntil
      : this.#lanes === null && this.#view.wasBusy(slot, slot)
    const asked: Claim = hasMet ? { ...claim, decide: 'run' } : claim
    const isHandOver = this.#lanes !== null && running !== null && placeOf(running).lane !== null
    // It takes moments, and excuses no slot that is late. The end of our own wakes us.
    if (isHandOver && this.#isOwn(running)) return null
    if (isHandOver && !isQueued) return asked
    const mustWait = running !== null && !running.hasLapsed && (claim.decide === 'miss' || isQueued)
    if (!mustWait) return asked
    if (!isQueued) this.#queue(slot, running, this.#isOwn(running))
    // What is known of the run is older than the slot: before it counts as met the store is asked.
    this.#mustLook = this.#queued?.isSure !== true && slot > busyUntil
    if (this.definition.catchUp !== 'all') this.#dueAt = this.#dueTime(this.definition.schedule.next(slot))
    return null
  }

  /** Why the slots before a claimed one did not run. The log tells as well which of them met a run: not if it is cut off. */
  #gapBefore(slot: number, mark: number): string {
    const { schedule } = this.definition
    const until = overlapEnd(schedule.latest(slot - 1), slot)
    const areOverlapped = this.#lanes === null && this.#view.wasBusy(schedule.next(mark), until)
    return areOverlapped ? overtakenReason : gapReason
  }

  #dueTime(slot: number): number {
    return dueTime(this.definition.schedule, this.definition, slot, this.storedName)
  }

  /** The claimed slot waits for an earlier run. */
  #queue(slot: number, running: Pick<SeenRun, 'fence'>, isSure: boolean): void {
    this.#queued = { slot, isSure }
    if (this.definition.overlap !== 'cancel') return
    const reason = `its next slot, ${new Date(slot).toISOString()}, has come (overlap: 'cancel')`
    for (const run of this.#runs.keys()) {
      if (run.grant.fence !== running.fence) continue
      run.stop({ kind: 'cancelled', reason, mayRetry: false })
      return
    }
    void requestStop(this.#desk, this.definition, { fence: running.fence, slot, reason })
  }

  /** Decides nothing, since the mark is decided: to take over or clear the run that is there, or to ask for it again. */
  #lapseClaim(mark: number, running: Pick<SeenRun, 'slot' | 'holder'>): Claim {
    const claim: Claim = { slot: mark, after: mark, decide: 'run', gap: '', reason: '' }
    if (this.#lanes === null) return claim
    const place = placeOf(running)
    return place.lane === null ? { ...claim, place, rules: this.#lanes.definition } : { ...claim, place }
  }

  /**
   * Whatever a task with lanes claims anew is claimed after a look that shows nothing under way in its own record, a slot
   * for a lane where nothing runs. Null: look again at what there is to claim.
   */
  async #withLane(claim: Claim): Promise<Claim | null> {
    if (this.#lanes === null || claim.place !== undefined) return claim
    const seen = await this.#lanes.look()
    if (seen === null) {
      await this.#claimer.rest()
      return null
    }
    const { main, free } = seen
    if (main !== null) this.#view.learn(main, this.#desk.context.options.clock.monotonic())
    if (main !== null && main.mark !== claim.after) return null
    if (main !== null && main.running !== null) return this.#besideRun(claim, main, main.running)
    if (claim.orders !== undefined || claim.decide === 'miss') return claim
    if (free === null) return { ...claim, decide: 'miss', reason: overtakenReason }
    return { ...claim, place: { lane: free, slot: claim.slot } }
  }

  /** What to claim while something is under way in the record of a task with lanes: it is never a new slot. */
  async #besideRun(
    { slot, after, ...claim }: Claim,
    main: TaskRecord,
    running: NonNullable<TaskRecord['running']>,
  ): Promise<Claim | null> {
    const lapseClaim = this.#lapseClaim(after, running)
    const hasLapsed = running.remainingMs <= 0
    // A pause leaves the retry as it is, and the slot is to be decided all the same.
    if (hasLapsed && main.paused && main.stop === null) return { ...lapseClaim, ...claim, slot, after }
    // It may be our own claim, whose answer was lost.
    if (hasLapsed || this.#claimer.isOwed) return lapseClaim
    if (claim.orders !== undefined) return null
    // A hand-over takes moments, a manual run as long as it takes.
    if (lapseClaim.rules === undefined) await this.#claimer.rest()
    else this.#queued = { slot, isSure: true }
    return null
  }

  async #claim(claim: Claim): Promise<void> {
    const { clock } = this.#desk.context.options
    const before = this.#view.running
    const claimed = await this.#claimer.ask(claim)
    if (claimed === null) return
    const { answer, sentAt } = claimed
    this.#desk.storeTime.note(sentAt, answer.now)
    this.#view.learn(answer, clock.monotonic())
    this.#supersession.learn(answer)
    if (!this.definition.isLane) {
      tellDecision(this.#desk.context.options.namespace, this.definition.name, claim, claimed)
    }
    this.#offer.answered(claim.slot, answer)
    const isCleared = before?.hasLapsed === true && before.fence !== this.#view.running?.fence
    if (isCleared && answer.outcome !== 'takeover') void reportLoss(this.#desk, this.definition, before)
    if (answer.outcome === 'granted' || answer.outcome === 'takeover') {
      this.#begin({ ...claimed, answer }, claim)
    } else if (claim.orders !== undefined) {
      if (answer.orders === claim.orders.before && answer.outcome !== 'held') await this.#claimer.rest()
    } else if (answer.outcome === 'held' && answer.running !== null && answer.running.remainingMs > 0) {
      if (this.#lanes === null && !this.definition.isLane) this.#queue(claim.slot, answer.running, true)
    } else if (answer.outcome === 'early') {
      // A clock that was far ahead may have left out slots that are still to come.
      const next = Math.min(claim.slot, this.definition.schedule.next(answer.now))
      await this.#claimer.pause(Math.min(next - answer.now, 1_000))
    } else if (!isCleared && answer.mark === claim.after) {
      // Nothing came of it, so the same claim is made again. With a store that keeps its contract it was made under the
      // token of the lapsed run itself, and the next one is not.
      await this.#claimer.rest()
      return
    }
    this.#claimer.refresh()
  }

  #begin(granted: Granted, claim: Claim): void {
    const { answer, isManual } = granted
    const { slot, fence } = answer
    const { storedName, name } = this.definition
    if (!this.#desk.fences.accept(storedName, fence)) {
      reportError(this.#desk.context, unsafeFence(name, fence), name)
      leaveOut(this.#desk, this.definition, answer, 'fence')
      return
    }
    const place = placeFor(answer, claim)
    const lanes = isManual || place?.lane === null ? null : this.#lanes
    const isHandOver = lanes !== null
    const definition = isHandOver ? this.definition : (this.#lanes?.definition ?? this.definition)
    if (this.#state === 'drained') {
      // With retries it is left to lapse, for a live node.
      if (!isRetryDue(answer, definition)) leaveOut(this.#desk, this.definition, answer, 'stopped')
      return
    }
    const handler: TaskHandler =
      lanes === null ? this.#handler : (view) => lanes.handOver(place ?? { lane: null, slot }, view.signal)
    const run = new Run(this.#desk, definition, runGrant(granted, isHandOver), () => this.wake())
    // Whoever asked for it may hold leases: they are none of the handler's.
    const running = runOutside(() => this.#runToEnd(run, handler))
    this.#runs.set(run, running)
    // It was due before the retry, which was none of its fault: it waits instead of being skipped.
    const isDue = !isManual && claim.orders === undefined && claim.slot > claim.after
    if (answer.outcome === 'takeover' && isDue) this.#deferral = { run, slot: claim.slot }
  }

  async #runToEnd(run: Run, handler: TaskHandler): Promise<void> {
    const isRecorded = await run.start(handler)
    if (isRecorded) this.#view.forgetRun(run.grant.fence)
    this.#runs.delete(run)
    this.#endDeferral(run)
    this.wake()
  }

  /** The slot that waited for the run is claimed now, or has been overtaken by the next one. */
  #endDeferral(run: Run): void {
    if (this.#deferral?.run !== run) return
    const { slot } = this.#deferral
    const newest = this.definition.schedule.latest(Math.floor(this.#desk.storeTime.now()))
    if (newest <= slot) this.#deferral = null
  }

  get #laneTasks(): readonly LaneTask[] {
    return this.#lanes?.tasks ?? []
  }

  /** This node holds it: there is nothing to look after. */
  #isOwn({ fence }: SeenRun): boolean {
    for (const run of this.#runs.keys()) if (run.grant.fence === fence) return run.isHeld
    return false
  }
}

/** Where what was granted takes place; null if the claim was made for something else. */
function placeFor({ slot }: { readonly slot: number }, { place }: Claim): Place | null {
  return place?.slot === slot ? place : null
}

function isRetryDue(
  { attempt }: { readonly attempt: number },
  { onCrash, maxAttempts }: Pick<TaskDefinition, 'onCrash' | 'maxAttempts'>,
): boolean {
  return onCrash === 'retry' && attempt < maxAttempts
}
