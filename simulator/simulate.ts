import { randomUUID } from 'node:crypto'
import { LockService } from '../src/core/lock-service.ts'
import type { DriverSession, LockDriver, TaskDriver } from '../src/driver/index.ts'
import { memoryDriver } from '../src/drivers/memory/index.ts'
import { type MemoryNamespace, memoryNamespace } from '../src/drivers/memory/table.ts'
import { ScheduledTaskStore } from '../src/scheduler/scheduled-task-store.ts'
import { TaskScheduler } from '../src/scheduler/task-scheduler.ts'
import { onEvent } from '../src/core/channels.ts'

import { rest, VirtualTime } from '../test/core/virtual-time.ts'
import { longestTtlMs, lockKeys } from './draw-plan.ts'
import { type Entry, History } from './history.ts'
import { type ClassesUnderTrial, Life } from './life.ts'
import { allArrivedMs, type Port } from './network.ts'
import { observedSession } from './observed-store.ts'
import type { Deed, NodePlan, Plan, TaskPlan } from './plan.ts'
import { noteTasks } from './task-ends.ts'

export interface SystemUnderTrial {
  readonly classes?: ClassesUnderTrial | undefined
  /** A bug of the store. */
  readonly plant?: Plant | undefined
}

/** Puts something wrong in the place of what is right in one session of the store. */
export type Plant = (right: {
  readonly locks: LockDriver
  readonly tasks: TaskDriver
  readonly table: MemoryNamespace
  readonly namespace: string
  readonly now: () => number
  readonly elsewhere: (namespace: string) => DriverSession
}) => {
  readonly locks?: Partial<LockDriver>
  readonly tasks?: Partial<TaskDriver>
  readonly listen?: DriverSession['listen']
}

/** Plays a plan. Resolves with all that happened, which is the same every time. */
export async function simulate(plan: Plan, system: SystemUnderTrial = {}): Promise<readonly Entry[]> {
  const simulation = new Simulation(plan, system)
  try {
    await simulation.play()
  } finally {
    await simulation.leave()
  }
  return simulation.history.entries
}

/** One machine, over all its lives. */
interface Place {
  readonly plan: NodePlan
  readonly port: Port
  readonly tasks: readonly TaskPlan[]
  life: Life | null
  lives: number
  isEdited: boolean
}

/** The longest that user code of the plan can take once nothing goes wrong any more, waiting and holding. */
const longestWorkMs = 8_000
/** How long tasks are watched after that. */
const afterglowMs = 4_000
const closingBoundMs = 3_000
const tableSymbol = Symbol.for('leasehold.memory.v1')

class Simulation {
  readonly history: History
  readonly #time = new VirtualTime()
  readonly #plan: Plan
  readonly #classes: ClassesUnderTrial
  readonly #storeName = `simulation ${randomUUID()}`
  readonly #table = memoryNamespace(this.#storeName, 'default')
  readonly #driver
  readonly #plant: SystemUnderTrial['plant']
  readonly #places = new Map<string, Place>()
  readonly #tokens = new Map<string, string>()
  readonly #leaving = new Set<Promise<void>>()
  readonly #beganAt: number
  #asks = 0
  #setBackMs = 0
  #isEnding = false
  readonly #onUnhandled = (reason: unknown): void => {
    const message = reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason)
    this.history.add({ kind: 'unhandled', message })
  }
  readonly #unsubscribe: () => void

  constructor(
    plan: Plan,
    { classes = { LockService, TaskScheduler, ScheduledTaskStore }, plant }: SystemUnderTrial,
  ) {
    this.#plan = plan
    this.#classes = classes
    this.#plant = plant
    this.history = new History(() => this.#time.now)
    this.#beganAt = this.#time.storeNow()
    const memory = memoryDriver({ store: this.#storeName, now: this.#time.storeNow })
    const { push, maxBatch } = plan
    this.#driver = { ...memory, abilities: { ...memory.abilities, push, maxBatch } }
    for (const node of plan.nodes) {
      const faults = plan.faults.filter((fault) => fault.node === node.name)
      const port: Port = {
        lagMs: node.lagMs,
        faults: new Map(faults.map((fault) => [fault.call, fault])),
        calls: 0,
        notices: 0,
        cutUntil: 0,
        cutHangs: false,
      }
      this.#places.set(node.name, {
        plan: node,
        port,
        tasks: plan.tasks,
        life: null,
        lives: 0,
        isEdited: false,
      })
    }
    process.on('unhandledRejection', this.#onUnhandled)
    this.#unsubscribe = onEvent('leasehold:scheduler-error', ({ task, error }) =>
      this.#onSchedulerError(task, error),
    )
  }

  async play(): Promise<void> {
    for (const place of this.#places.values()) this.#begin(place)
    for (const deed of this.#plan.deeds) this.#at(deed.at, () => this.#do(deed))
    await this.#time.advance(this.#plan.endsAt)
    await this.#comeToRest()
  }

  /** Takes back what was done to this process. */
  async leave(): Promise<void> {
    await rest()
    process.off('unhandledRejection', this.#onUnhandled)
    this.#unsubscribe()
    const stores = (globalThis as { [tableSymbol]?: Map<string, unknown> })[tableSymbol]
    stores?.delete(this.#storeName)
  }

  // ---- deeds

  #at(moment: number, act: () => void): void {
    void this.#time.sleep(moment - this.#time.now).then(act)
  }

  #begin(place: Place): void {
    place.lives++
    place.life = new Life({
      classes: this.#classes,
      driver: this.#driver,
      open: (namespace) => this.#open(namespace, `${place.plan.name}.${place.lives}`),
      time: this.#time,
      history: this.history,
      plan: place.plan,
      port: place.port,
      tasks: place.tasks,
      fired: this.#plan.fired,
      number: place.lives,
      seed: this.#plan.seed,
      beganAt: this.#beganAt,
      isEdited: place.isEdited,
      tokenOf: (key, fence) => this.#tokens.get(`${key}/${fence}`) ?? '',
    })
    place.life.start()
    if (this.#isEnding) this.#makeWell(place.life)
  }

  #do(deed: Deed): void {
    if (this.#isEnding) return
    if (deed.kind === 'exception') return this.#except(deed)
    if (deed.kind === 'control') return this.#control(deed)
    const place = this.#places.get(deed.node)
    const life = place?.life
    if (place === undefined || life === null || life === undefined || life.isStandingStill) return
    if (life.state !== 'up') return
    switch (deed.kind) {
      case 'acquire':
        return life.acquire(++this.#asks, deed)
      case 'revoke':
        return life.revoke(deed.key)
      case 'look':
        return life.look(++this.#asks, deed.key)
      case 'trigger':
      case 'backfill':
        return life.order(deed)
      case 'fire':
        return life.fire(deed.slot)
      case 'pause':
      case 'block':
      case 'suspend':
        this.history.add({ kind: `${deed.kind}s`, by: life.name, detail: `${deed.forMs} ms` })
        life.standStill(deed.kind)
        return this.#at(this.#time.now + deed.forMs, () => this.#goOn(life, deed))
      case 'crash':
        life.crash()
        return this.#restart(place, deed.downMs, deed.isEdited)
      case 'restart': {
        const leaving = life.leave(deed.drainMs).then(() => this.#restart(place, deed.downMs, deed.isEdited))
        this.#leaving.add(leaving)
        return void leaving.finally(() => this.#leaving.delete(leaving))
      }
      case 'outage':
        this.history.add({ kind: 'is-cut-off', by: life.name, detail: `${deed.forMs} ms` })
        place.port.cutUntil = this.#time.now + deed.forMs
        place.port.cutHangs = deed.hangs
        return
      case 'set-wall-clock':
        return life.setWallClock(deed.byMs)
    }
  }

  #goOn(life: Life, deed: Extract<Deed, { kind: 'pause' | 'block' | 'suspend' }>): void {
    if (life.state !== 'gone' && life.isStandingStill) void life.goOn(deed.answersFirst)
  }

  #restart(place: Place, downMs: number, isEdited: boolean): void {
    place.isEdited ||= isEdited
    place.life = null
    const begin = (): void => {
      if (place.life === null && !(this.#isEnding && place.plan.isDeadInTheEnd)) this.#begin(place)
    }
    if (this.#isEnding) begin()
    else this.#at(this.#time.now + downMs, begin)
  }

  #except(deed: Extract<Deed, { kind: 'exception' }>): void {
    const { leases, tasks, runs } = this.#table
    const key = 'key' in deed ? deed.key : null
    const byMs = 'byMs' in deed ? deed.byMs : 0
    const fence = deed.what === 'immediate-release' ? leases.get(deed.key)?.fence : undefined
    this.history.add({ kind: 'exception', what: deed.what, key, byMs })
    if (deed.what === 'delete-record') leases.delete(deed.key)
    if (deed.what === 'step-store-clock') {
      this.#time.stepStore(byMs)
      this.#setBackMs += Math.max(0, -byMs)
    }
    if (deed.what === 'lose-data') {
      for (const map of [leases, tasks, runs]) map.clear()
      Object.assign(this.#table, { floor: 0, version: 0 })
    }
    if (fence !== undefined)
      void this.#open('default', 'operator').locks.revoke(
        { key: key as string, fence, immediate: true },
        { attempt: 1, lockedRows: 'wait' },
      )
  }

  #control({ task, what, at }: Extract<Deed, { kind: 'control' }>): void {
    this.history.add({ kind: 'controls', by: 'operator', detail: `${what} ${task}` })
    const request = { task, kind: what, requestId: `${at} ${what}`, by: 'operator', fence: null }
    void this.#open('default', 'operator').tasks.control(request, { attempt: 1, lockedRows: 'wait' })
  }

  // ---- the end

  /** The faults end, some nodes stay dead, and everything must come to rest. */
  async #comeToRest(): Promise<void> {
    this.#isEnding = true
    this.history.add({ kind: 'faults-end' })
    for (const place of this.#places.values()) this.#settleDown(place)
    await rest()
    for (const life of this.#living()) life.beliefs.sampleAll()
    const endedAt = this.#time.now
    await this.#advanceUntil(() => this.#isAtRest(), longestWorkMs)
    this.#noteUnsettled()
    for (const life of this.#living()) life.beliefs.sampleAll()
    await this.#inherit(endedAt)
    if (this.#plan.tasks.length > 0) await this.#time.advance(afterglowMs)
    await noteTasks({
      plan: this.#plan,
      history: this.history,
      time: this.#time,
      table: this.#table,
      driver: { ...this.#driver, open: (namespace) => this.#open(namespace, 'onlooker') },
      classes: this.#classes,
      living: this.#living(),
    })
    for (const life of this.#living()) {
      const leaving = life.leave(0)
      await this.#advanceUntil(() => life.state === 'gone', closingBoundMs)
      if (life.state !== 'gone') this.history.add({ kind: 'unsettled', by: life.name, what: 'close()' })
      else await leaving
    }
    // What is sent after a close would show here.
    await this.#time.advance(1_000)
  }

  #settleDown(place: Place): void {
    const { life, plan } = place
    if (life?.state === 'up' && plan.isDeadInTheEnd) {
      life.crash()
      place.life = null
    } else if (life !== null) {
      this.#makeWell(life)
      if (life.isStandingStill) void life.goOn(true)
    } else if (!plan.isDeadInTheEnd) {
      this.#begin(place)
    }
  }

  #makeWell(life: Life): void {
    life.link.isHealed = true
    life.letGo()
  }

  #living(): Life[] {
    return [...this.#places.values()].flatMap(({ life }) => (life?.state === 'up' ? [life] : []))
  }

  #isAtRest(): boolean {
    return this.#leaving.size === 0 && this.#living().every(({ work }) => work.size === 0)
  }

  async #advanceUntil(isDone: () => boolean, withinMs: number): Promise<void> {
    const until = this.#time.now + withinMs
    while (!isDone() && this.#time.now < until)
      await this.#time.advance(Math.min(100, until - this.#time.now))
  }

  #noteUnsettled(): void {
    for (const { name, work } of this.#living())
      if (work.size > 0) this.history.add({ kind: 'unsettled', by: name, what: `${work.size} calls` })
    if (this.#leaving.size > 0) this.history.add({ kind: 'unsettled', by: '?', what: 'a stop' })
  }

  /** A node that lives gets each key once what the dead did has run out. */
  async #inherit(endedAt: number): Promise<void> {
    const heir = this.#living()[0]
    if (heir === undefined) return
    // A task that holds one all the time leaves no chance to others.
    const ofTasks = new Set(this.#plan.tasks.map(({ lock }) => lock))
    for (const key of lockKeys) {
      if (ofTasks.has(key)) continue
      const startedAt = this.#time.now
      const boundMs = Math.max(0, endedAt + allArrivedMs + longestTtlMs + this.#setBackMs - startedAt) + 1_000
      let isDone = false
      let isOver = false
      void this.#take(heir, key, startedAt + boundMs).then((done) => {
        isDone = done
        isOver = true
      })
      await this.#advanceUntil(() => isOver, boundMs + 1_000)
      this.history.add({ kind: 'inheritance', key, tookMs: this.#time.now - startedAt, boundMs, isDone })
    }
  }

  async #take(heir: Life, key: string, until: number): Promise<boolean> {
    while (this.#time.now < until) {
      try {
        const lease = await heir.locks.acquire(key, { wait: until - this.#time.now, ttl: 1_000 })
        const isHeld = lease?.isHeld() === true
        await lease?.release()
        return isHeld
      } catch {
        // A store that has gone back in time issues fences that are refused, until its clock has caught up.
        await this.#time.sleep(200)
      }
    }
    return false
  }

  // ---- the store

  #open(namespace: string, by: string): DriverSession {
    const session = this.#driver.open(namespace)
    const wrong = this.#plant?.({
      locks: session.locks,
      tasks: session.tasks,
      table: this.#table,
      namespace,
      now: this.#time.storeNow,
      elsewhere: (other) => this.#driver.open(other),
    })
    const planted: DriverSession = {
      locks: { ...session.locks, ...wrong?.locks },
      tasks: { ...session.tasks, ...wrong?.tasks },
      listen: wrong?.listen ?? session.listen,
      close: () => session.close(),
    }
    return observedSession(planted, by, {
      history: this.history,
      table: this.#table,
      now: () => Math.floor(this.#time.storeNow()),
      onGrant: (key, token, fence) => this.#onGrant(key, token, fence),
    })
  }

  #onGrant(key: string, token: string, fence: number): void {
    this.#tokens.set(`${key}/${fence}`, token)
    for (const { life } of this.#places.values())
      if (life !== null && life.state !== 'gone') life.beliefs.sample(key, token)
  }

  /** Faults are expected; anything else that a scheduler reports is a mistake of its own. */
  #onSchedulerError(task: string | undefined, error: unknown): void {
    const code = (error as { code?: string }).code ?? (error as Error).name
    const message = error instanceof Error ? error.message : String(error)
    const isPlanned = error instanceof Error && /^(Refused, as planned|The record is locked)/.test(message)
    if (code === 'DRIVER_FAULT' || code === 'STORE_UNAVAILABLE' || isPlanned) return
    this.history.add({ kind: 'error', by: '?', during: 'scheduler', key: task ?? '', code, message })
  }
}
