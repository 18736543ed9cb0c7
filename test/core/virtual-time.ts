import { AsyncResource } from 'node:async_hooks'
import type { Clock, Timer, TimerOptions } from 'leasehold'

/** 2026-01-01T00:00:00Z, where every simulated wall clock begins. */
const epoch = 1_767_225_600_000

interface Alarm {
  dueAt: number
  readonly order: number
  readonly owner: WorkerClock | null
  readonly keepAlive: boolean
  readonly callback: () => void
}

/**
 * Time that passes only when a test says so: one timeline, on which each simulated process and the store have a clock
 * of their own. Timers fire in order, and everything that a timer sets off has come to rest before the next one fires,
 * so a run is the same every time.
 */
export class VirtualTime {
  #now = 0
  #orders = 0
  #alarms: Alarm[] = []

  /** Milliseconds since the beginning. */
  get now(): number {
    return this.#now
  }

  /** The store's clock, for `memoryDriver({ now })`. Steps with {@link stepStore}. */
  readonly storeNow = (): number => epoch + this.#now + this.#storeOffset
  #storeOffset = 0

  stepStore(byMs: number): void {
    this.#storeOffset += byMs
  }

  /** The clocks of one process, its wall clock off by this much, and running so many times as fast as ours. */
  worker(wallOffsetMs = 0, rate = 1): WorkerClock {
    return new WorkerClock(this, epoch + wallOffsetMs, rate)
  }

  /** Lets so much time pass. */
  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs
    await rest()
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#now = Math.max(this.#now, next.dueAt)
      this.#remove(next)
      next.callback()
      await rest()
    }
    this.#now = until
  }

  /** Lets time pass until a promise settles. Fails if that takes longer, or if nothing is left that could settle it. */
  async until<Value>(promise: Promise<Value>, withinMs = 600_000): Promise<Value> {
    let settled = false
    const watch = (): void => {
      settled = true
    }
    promise.then(watch, watch)
    const deadline = this.#now + withinMs
    await rest()
    while (!settled) {
      const next = this.#next(deadline)
      if (next === undefined) throw new Error(`It did not settle within ${withinMs} ms of virtual time.`)
      this.#now = Math.max(this.#now, next.dueAt)
      this.#remove(next)
      next.callback()
      await rest()
    }
    return promise
  }

  /** Rejects after so much time, or resolves: for delays in simulated networks. */
  sleep(forMs: number): Promise<void> {
    return new Promise((resolve) => this.setAlarm(null, forMs, false, resolve))
  }

  /** Timers that are set: all, or those of one process. */
  timers(owner?: WorkerClock): readonly { readonly inMs: number; readonly keepAlive: boolean }[] {
    return this.#alarms
      .filter((alarm) => owner === undefined || alarm.owner === owner)
      .map(({ dueAt, keepAlive }) => ({ inMs: dueAt - this.#now, keepAlive }))
  }

  setAlarm(owner: WorkerClock | null, delayMs: number, keepAlive: boolean, callback: () => void): Timer {
    if (!(delayMs >= 0)) throw new RangeError(`A timer of ${delayMs} ms.`)
    const dueAt = this.#now + delayMs
    // As Node's own timers do: the callback runs in the asynchronous context in which the timer was set.
    const context = new AsyncResource('TIMER')
    const alarm: Alarm = {
      dueAt,
      order: this.#orders++,
      owner,
      keepAlive,
      callback: () => context.runInAsyncScope(callback),
    }
    this.#alarms.push(alarm)
    return { cancel: () => this.#remove(alarm) }
  }

  /** What was to fire on a process's clock comes so much later. */
  postpone(owner: WorkerClock, byMs: number): void {
    for (const alarm of this.#alarms) if (alarm.owner === owner) alarm.dueAt += byMs
  }

  #next(until: number): Alarm | undefined {
    let next: Alarm | undefined
    for (const alarm of this.#alarms) {
      if (alarm.owner?.frozen === true || Math.max(alarm.dueAt, this.#now) > until) continue
      if (
        next === undefined ||
        alarm.dueAt < next.dueAt ||
        (alarm.dueAt === next.dueAt && alarm.order < next.order)
      ) {
        next = alarm
      }
    }
    return next
  }

  #remove(alarm: Alarm): void {
    const index = this.#alarms.indexOf(alarm)
    if (index >= 0) this.#alarms.splice(index, 1)
  }
}

/** The clocks and timers of one simulated process. */
export class WorkerClock implements Clock {
  readonly #time: VirtualTime
  readonly rate: number
  #wallBase: number
  #suspendedMs = 0
  /** Since when its monotonic clock stands still. */
  #suspendedAt = Infinity
  /** No timer of a frozen process fires; those that came due meanwhile fire when it goes on. */
  frozen = false

  constructor(time: VirtualTime, wallBase: number, rate: number) {
    this.#time = time
    this.#wallBase = wallBase
    this.rate = rate
  }

  monotonic(): number {
    return 1_000 + (Math.min(this.#time.now, this.#suspendedAt) - this.#suspendedMs) * this.rate
  }

  wall(): number {
    return this.#wallBase + this.#time.now * this.rate
  }

  setTimer(delayMs: number, callback: () => void, options?: TimerOptions): Timer {
    // At least so much that it is later: a rest of 1e-13 ms, as sums of fractions leave it, would be set for ever.
    const inMs = delayMs > 0 ? Math.max(delayMs / this.rate, 1e-6) : delayMs
    return this.#time.setAlarm(this, inMs, options?.keepAlive === true, callback)
  }

  /** Somebody sets the wall clock. */
  stepWall(byMs: number): void {
    this.#wallBase += byMs
  }

  /** The machine is suspended for so long: neither its timers nor its monotonic clock notice. */
  async suspend(forMs: number): Promise<void> {
    this.frozen = true
    await this.#time.advance(forMs)
    this.frozen = false
    this.wasSuspended(forMs)
  }

  /** The machine is suspended, until {@link wakeUp}. */
  fallAsleep(): void {
    this.frozen = true
    this.#suspendedAt = this.#time.now
  }

  wakeUp(): void {
    this.frozen = false
    if (this.#suspendedAt === Infinity) return
    const forMs = this.#time.now - this.#suspendedAt
    this.#suspendedAt = Infinity
    this.wasSuspended(forMs)
  }

  /** Time has passed without its timers and its monotonic clock. */
  wasSuspended(forMs: number): void {
    this.#suspendedMs += forMs
    this.#time.postpone(this, forMs)
  }

  /** The process stands still for so long (a long pause, SIGSTOP), and its monotonic clock goes on. */
  async freeze(forMs: number): Promise<void> {
    this.frozen = true
    await this.#time.advance(forMs)
    this.frozen = false
  }
}

/** Everything that can happen without time passing has happened. */
export function rest(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
