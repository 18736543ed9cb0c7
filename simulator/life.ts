import type { LockService } from '../src/core/lock-service.ts'
import type { Lease } from '../src/core/lease.ts'
import type { ScheduledTaskStore } from '../src/scheduler/scheduled-task-store.ts'
import type { TaskScheduler } from '../src/scheduler/task-scheduler.ts'
import { seededRandom } from '../src/testing/seeded-random.ts'
import type { VirtualTime, WorkerClock } from '../test/core/virtual-time.ts'
import { Beliefs } from './beliefs.ts'
import type { EntryOf } from './checkers/violation.ts'
import type { History } from './history.ts'
import { LifeTasks } from './life-tasks.ts'
import { Link, type LinkOptions, type Port } from './network.ts'
import type { AcquireDeed, Deed, FiredPlan, NodePlan, TaskPlan } from './plan.ts'

/** What is simulated: the real classes, or ones with a planted bug. */
export interface ClassesUnderTrial {
  readonly LockService: new (...args: ConstructorParameters<typeof LockService>) => LockService
  readonly TaskScheduler: new (...args: ConstructorParameters<typeof TaskScheduler>) => TaskScheduler
  readonly ScheduledTaskStore: new (
    ...args: ConstructorParameters<typeof ScheduledTaskStore>
  ) => ScheduledTaskStore
}

export const requestTimeoutMs = 400
/** The most attempts at one slot. */
export const maxAttempts = 3

export interface LifeOptions extends Pick<LinkOptions, 'driver' | 'open'> {
  readonly classes: ClassesUnderTrial
  readonly time: VirtualTime
  readonly history: History
  readonly plan: NodePlan
  readonly port: Port
  readonly tasks: readonly TaskPlan[]
  readonly fired: FiredPlan | null
  readonly number: number
  readonly seed: number
  /** On the store's clock. */
  readonly beganAt: number
  readonly isEdited: boolean
  /** The token of a grant, as the store knows it. */
  readonly tokenOf: (key: string, fence: number) => string
}

/** How a process stands still: see `Deed`. */
export type Standstill = 'pause' | 'block' | 'suspend'

/** One process from its start to its end: the library, and the user code on it. */
export class Life {
  readonly name: string
  readonly link: Link
  readonly locks: LockService
  /** Null where there are no tasks: one costs as much as the rest of a short life. */
  readonly scheduler: TaskScheduler | null
  readonly #store: ScheduledTaskStore | null
  readonly #tasks: LifeTasks | null
  readonly clock: WorkerClock
  readonly beliefs: Beliefs
  readonly isEdited: boolean
  /** What its user code waits for. */
  readonly work = new Set<Promise<unknown>>()
  state: 'up' | 'stopping' | 'gone' = 'up'
  /** Nothing is held on to any more. */
  isEnding = false
  readonly #options: LifeOptions
  /** The user code's timers. */
  readonly #ownClock: WorkerClock
  readonly #letGo = new Set<() => void>()
  #standstills = 0
  #standstill: Standstill = 'pause'

  constructor(options: LifeOptions) {
    const { plan, time, number, seed, classes, history, port } = options
    this.#options = options
    this.name = `${plan.name}.${number}`
    this.isEdited = options.isEdited
    this.clock = time.worker(plan.wallOffsetMs, plan.rate)
    this.#ownClock = time.worker(plan.wallOffsetMs, plan.rate)
    this.beliefs = new Beliefs({ history, by: this.name, clock: this.clock, timersLateMs: plan.timersLateMs })
    this.link = new Link({ ...options, clock: this.clock, history, port, by: this.name })
    const random = seededRandom(seed * 64 + number * 8 + plan.name.charCodeAt(1)).next
    this.locks = new classes.LockService({
      driver: this.link.driver,
      clock: lateClock(this.clock, plan.timersLateMs),
      random,
      requestTimeout: requestTimeoutMs,
      waitStep: 40,
    })
    const hasTasks = options.tasks.length > 0
    this.scheduler = hasTasks ? new classes.TaskScheduler({ locks: this.locks, controlEvery: 1_000 }) : null
    this.#store = options.fired === null ? null : new classes.ScheduledTaskStore({ locks: this.locks })
    this.#tasks = this.scheduler === null ? null : this.#userCode(this.scheduler)
    for (const task of options.tasks) this.#tasks?.schedule(task)
  }

  get isStandingStill(): boolean {
    return this.clock.frozen
  }

  start(): void {
    this.#note('starts', this.isEdited ? 'edited' : '')
    if (this.scheduler !== null) this.#begin(this.#startScheduler(this.scheduler))
  }

  /** Again, where the store refuses the task: that is what the error asks for. */
  async #startScheduler(scheduler: TaskScheduler): Promise<void> {
    for (;;) {
      try {
        return await scheduler.start()
      } catch (error) {
        this.#failed('scheduler', '', error)
        if ((error as { code?: string }).code !== 'STORE_UNUSABLE') return
        await this.#sleep(200)
        if (this.state !== 'up') return
      }
    }
  }

  // ---- what is done to it

  standStill(kind: Standstill): void {
    this.#standstill = kind
    this.#standstills++
    for (const clock of [this.clock, this.#ownClock]) {
      if (kind === 'suspend') clock.fallAsleep()
      else clock.frozen = true
    }
  }

  /** Its event loop turns again: user code that blocked it first, then timers or answers. */
  async goOn(answersFirst: boolean): Promise<void> {
    const kind = this.#standstill
    this.#note('goes-on', kind)
    this.clock.wakeUp()
    this.#ownClock.wakeUp()
    this.beliefs.wentOn({ withClockJump: kind === 'suspend' })
    if (kind === 'block') this.beliefs.sampleAll()
    if (answersFirst) this.link.thaw()
    else await this.#options.time.sleep(0).then(() => this.link.thaw())
  }

  setWallClock(byMs: number): void {
    this.#note('sets-wall-clock', `${byMs} ms`)
    this.clock.stepWall(byMs)
    this.beliefs.wentOn({ withClockJump: true })
  }

  crash(): void {
    this.#note('crashes', '')
    this.state = 'gone'
    this.link.isDead = true
    this.standStill('pause')
    this.beliefs.clear()
  }

  /** Stops and closes in good order. */
  async leave(drainMs: number): Promise<void> {
    this.#note('stops', '')
    this.state = 'stopping'
    const stopping = [this.scheduler, this.#store].map(async (one) => one?.stop({ drain: drainMs }))
    await Promise.all(stopping).catch((error: unknown) => this.#failed('stop', '', error))
    this.#note('closes', '')
    await this.locks.close().catch((error: unknown) => this.#failed('close', '', error))
    this.#note('closed', '')
    this.state = 'gone'
    this.noteLeaks()
  }

  /** What is held without an end is given back from here on. */
  letGo(): void {
    this.isEnding = true
    for (const letGo of this.#letGo) letGo()
  }

  noteLeaks(): void {
    const { history, time } = this.#options
    const timers = time.timers(this.clock).length
    if (timers > 0) history.add({ kind: 'leak', by: this.name, what: `${timers} timers` })
    if (this.link.openChannels > 0) history.add({ kind: 'leak', by: this.name, what: 'a subscription' })
  }

  // ---- what it does

  acquire(ask: number, deed: AcquireDeed): void {
    this.#begin(this.#acquire(ask, deed))
  }

  revoke(key: string): void {
    const told = (outcome: string): void =>
      this.#options.history.add({ kind: 'revoked', by: this.name, key, outcome })
    this.#begin(
      this.locks.forceRelease(key).then(told, (error: unknown) => this.#failed('revoke', key, error)),
    )
  }

  look(ask: number, key: string): void {
    const { history } = this.#options
    history.add({ kind: 'asks', by: this.name, ask, key, how: 'peek' })
    const looking = this.locks.peek(key).then(
      (info) => history.add({ kind: 'looked', by: this.name, key, isHeld: info !== null, ask }),
      (error: unknown) => this.#failed('look', key, error),
    )
    this.#begin(looking)
  }

  order(deed: Extract<Deed, { kind: 'trigger' | 'backfill' }>): void {
    if (this.#tasks !== null) this.#begin(this.#tasks.order(deed))
  }

  fire(slot: number): void {
    const { fired } = this.#options
    if (this.#tasks !== null && fired !== null) this.#begin(this.#tasks.fire(fired, slot))
  }

  async #acquire(ask: number, deed: AcquireDeed): Promise<void> {
    const { history } = this.#options
    const { key, ttlMs: ttl, waitMs: wait, hasHeartbeat: heartbeat, how, maxLifetimeMs, abortAfterMs } = deed
    const by = this.name
    history.add({ kind: 'asks', by, ask, key, how: `${how}, ttl ${ttl}, wait ${wait}` })
    const signal = abortAfterMs === null ? undefined : this.#abortAfter(abortAfterMs)
    const options = { ttl, wait, heartbeat, signal, maxLifetime: maxLifetimeMs ?? undefined }
    const mine = new Error('mine')
    try {
      if (how === 'run' || how === 'throw') {
        const ran = await this.locks.runExclusive(
          key,
          (lease) => this.#workUnder(lease, deed, ask, mine),
          options,
        )
        if (ran.acquired)
          history.add({ kind: 'ran', by, key, isOwnResult: how === 'run' && ran.result === ask })
        else history.add({ kind: 'null', by, ask, key })
        return
      }
      const lease = await this.locks.acquire(key, options)
      if (lease === null) history.add({ kind: 'null', by, ask, key })
      else await this.#hold(lease, deed)
    } catch (error) {
      if (error === mine) history.add({ kind: 'ran', by, key, isOwnResult: how === 'throw' })
      else this.#failed('acquire', key, error)
    }
  }

  async #workUnder(lease: Lease, deed: AcquireDeed, ask: number, mine: Error): Promise<number> {
    const belief = this.beliefs.begin(lease.key, lease.token, lease.fence, lease)
    await this.#hang(deed, lease)
    this.beliefs.end(belief)
    if (deed.how === 'throw') throw mine
    return ask
  }

  async #hold(lease: Lease, deed: AcquireDeed): Promise<void> {
    const belief = this.beliefs.begin(lease.key, lease.token, lease.fence, lease)
    await this.#hang(deed, lease)
    this.beliefs.end(belief)
    await Promise.all([this.#release(lease), deed.how === 'release-twice' ? this.#release(lease) : null])
  }

  /** Stays, as long as the deed says, and extends in the middle. */
  async #hang({ holdMs, extendToMs, key }: AcquireDeed, lease: Lease): Promise<void> {
    if (extendToMs !== null) {
      await this.#sleep((holdMs ?? 500) / 2)
      await lease.extend(extendToMs).catch((error: unknown) => this.#failed('extend', key, error))
    }
    if (holdMs !== null) return this.#sleep(extendToMs === null ? holdMs : holdMs / 2)
    if (!this.isEnding) await new Promise<void>((resolve) => this.#letGo.add(resolve))
  }

  async #release(lease: Lease): Promise<void> {
    const { history, plan } = this.#options
    const startedAt = this.clock.monotonic()
    const standstills = this.#standstills
    try {
      const outcome = await lease.release()
      const tookMs = this.clock.monotonic() - startedAt
      const wasHeldUp = standstills !== this.#standstills || plan.timersLateMs > 0
      history.add({
        kind: 'released',
        by: this.name,
        key: lease.key,
        fence: lease.fence,
        outcome,
        tookMs,
        wasHeldUp,
      })
    } catch (error) {
      this.#failed('release', lease.key, error)
    }
  }

  #abortAfter(milliseconds: number): AbortSignal {
    const controller = new AbortController()
    this.#ownClock.setTimer(milliseconds, () => controller.abort(new Error('ABORTED')))
    return controller.signal
  }

  #userCode(scheduler: TaskScheduler): LifeTasks {
    const { history, tokenOf, isEdited, beganAt } = this.#options
    return new LifeTasks({
      by: this.name,
      history,
      beliefs: this.beliefs,
      isEdited,
      scheduler,
      store: this.#store,
      tokenOf,
      instantOf: (at) => new Date(beganAt + at),
      sleep: (forMs) => this.#sleep(forMs),
      failed: (during, key, error) => this.#failed(during, key, error),
    })
  }

  #begin(work: Promise<unknown>): void {
    const forget = (): void => void this.work.delete(work)
    this.work.add(work)
    work.then(forget, forget)
  }

  #sleep(forMs: number): Promise<void> {
    return new Promise((resolve) => {
      this.#ownClock.setTimer(forMs, resolve)
    })
  }

  #failed(during: EntryOf<'error'>['during'], key: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    const code = (error as { code?: string }).code ?? message
    this.#options.history.add({ kind: 'error', by: this.name, during, key, code, message })
  }

  #note(
    kind: 'starts' | 'goes-on' | 'crashes' | 'stops' | 'closes' | 'closed' | 'sets-wall-clock',
    detail: string,
  ): void {
    this.#options.history.add({ kind, by: this.name, detail })
  }
}

function lateClock(clock: WorkerClock, lateMs: number) {
  if (lateMs === 0) return clock
  return {
    monotonic: () => clock.monotonic(),
    wall: () => clock.wall(),
    setTimer: (...[delayMs, callback, options]: Parameters<WorkerClock['setTimer']>) =>
      clock.setTimer(delayMs + lateMs, callback, options),
  }
}
