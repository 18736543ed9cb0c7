import type { Clock, Timer, TimerOptions } from '../core/clock.ts'
import { InvalidOptionError } from '../core/errors.ts'
import { readOptions } from '../core/read-options.ts'

export interface FakeClockOptions {
  /** What the wall clock shows at first, in milliseconds since the epoch. Default is 2026-01-01T00:00:00Z. */
  readonly wall?: number | undefined
}

/** A timer that has been set and has not fired. */
export interface PendingTimer {
  /** Milliseconds until it is due; 0 or less if it is overdue. */
  readonly inMs: number
  readonly keepAlive: boolean
}

interface Alarm extends Timer {
  readonly dueAt: number
  readonly keepAlive: boolean
  readonly callback: () => void
}

/**
 * A clock for tests: time passes only when the test says so, and timers fire in the order in which they are due.
 *
 * Give it to `LockService` as `clock`. The store has a time of its own: the in-process driver shares this one with
 * `memoryDriver({ now: () => clock.wall() })`.
 *
 * @example
 * ```ts
 * const clock = new FakeClock()
 * const locks = new LockService({ driver: memoryDriver({ now: () => clock.wall() }), clock })
 * const lease = await locks.acquire('key', { ttl: '30s', heartbeat: false })
 * await clock.advance(30_000)
 * lease.isHeld() // false
 * ```
 */
export class FakeClock implements Clock {
  #monotonic = 1_000
  #wall: number
  #alarms: Alarm[] = []

  constructor(options: FakeClockOptions = {}) {
    const { wall = Date.UTC(2026, 0, 1) } = readOptions('FakeClock', options, ['wall'])
    assertTime('wall', wall, -Infinity)
    this.#wall = wall
  }

  monotonic(): number {
    return this.#monotonic
  }

  wall(): number {
    return this.#wall
  }

  setTimer(delayMs: number, callback: () => void, options: TimerOptions = {}): Timer {
    if (delayMs !== Infinity) assertTime('delayMs', delayMs, 0)
    if (typeof callback !== 'function')
      throw new InvalidOptionError('callback', 'callback must be a function.')
    const { keepAlive = false } = readOptions('setTimer', options, ['keepAlive'])
    const alarm: Alarm = {
      dueAt: this.#monotonic + delayMs,
      keepAlive,
      callback,
      cancel: () => {
        this.#alarms = this.#alarms.filter((other) => other !== alarm)
      },
    }
    this.#alarms.push(alarm)
    return alarm
  }

  /** The timers that are set, the next one first. */
  get timers(): readonly PendingTimer[] {
    return this.#alarms
      .map(({ dueAt, keepAlive }) => ({ inMs: dueAt - this.#monotonic, keepAlive }))
      .toSorted((one, other) => one.inMs - other.inMs)
  }

  /**
   * Lets so much time pass on both clocks. Timers fire on the way, each at its time, and what it sets off comes to rest
   * before the next one fires. 0 fires what is due now.
   */
  async advance(byMs: number): Promise<void> {
    assertTime('byMs', byMs, 0)
    const end = this.#monotonic + byMs
    await settle()
    for (let next = this.#nextDue(end); next !== undefined; next = this.#nextDue(end)) {
      await this.#fire(next)
    }
    this.#passUntil(end)
    await settle()
  }

  /**
   * Lets time pass until the promise is settled, and answers or throws what it settled to.
   *
   * @throws Error if that takes longer than `withinMs` of this clock's time (default 10 minutes), or no timer is left
   */
  async until<Value>(promise: Promise<Value>, withinMs = 600_000): Promise<Value> {
    let isSettled = false
    const note = (): void => {
      isSettled = true
    }
    promise.then(note, note)
    const end = this.#monotonic + withinMs
    await settle()
    while (!isSettled) {
      const next = this.#nextDue(end)
      if (next === undefined) {
        throw new Error(
          `The promise did not settle within ${withinMs} ms; ${this.#alarms.length} timers are set.`,
        )
      }
      await this.#fire(next)
    }
    return promise
  }

  /**
   * Sets the wall clock forward or back; the monotonic clock does not notice. Forward is also what a suspended machine
   * sees when it wakes.
   */
  stepWall(byMs: number): void {
    assertTime('byMs', byMs, -Infinity)
    this.#wall += byMs
  }

  /** Moves the monotonic clock forward alone. Timers that become due fire at the next {@link advance}. */
  stepMonotonic(byMs: number): void {
    assertTime('byMs', byMs, 0)
    this.#monotonic += byMs
  }

  /** So much time passes while nothing runs: a blocked event loop, a stopped process. Timers are late. */
  stall(byMs: number): void {
    this.stepMonotonic(byMs)
    this.stepWall(byMs)
  }

  #nextDue(end: number): Alarm | undefined {
    let next: Alarm | undefined
    for (const alarm of this.#alarms) {
      if (alarm.dueAt <= end && (next === undefined || alarm.dueAt < next.dueAt)) next = alarm
    }
    return next
  }

  async #fire(alarm: Alarm): Promise<void> {
    this.#passUntil(alarm.dueAt)
    alarm.cancel()
    alarm.callback()
    await settle()
  }

  #passUntil(moment: number): void {
    const byMs = Math.max(0, moment - this.#monotonic)
    this.#monotonic += byMs
    this.#wall += byMs
  }
}

/** @throws InvalidOptionError */
function assertTime(option: string, ms: number, min: number): void {
  if (typeof ms === 'number' && Number.isFinite(ms) && ms >= min) return
  const least = min === -Infinity ? '' : `, at least ${min}`
  throw new InvalidOptionError(option, `${option} must be a number of milliseconds${least}.`)
}

/** Kept, so that whoever replaces the global timers in a test does not stop this clock. */
const nextTurn = setImmediate

/** Everything that can happen without time passing has happened. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    nextTurn(resolve)
  })
}
