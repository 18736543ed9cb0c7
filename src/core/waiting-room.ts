import type { Acquisition } from './acquisition.ts'
import type { Clock, Timer } from './clock.ts'
import { ClosedError, type LeaseholdError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { WakeUps } from './wake-ups.ts'

export interface WaitingRoomOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
}

export interface WaitOptions {
  /** How much longer to wait; may be `Infinity`. */
  readonly waitMs: number
  readonly waitStepMs: number
  readonly signal: AbortSignal | null
  /** What the try before the wait failed with; null if it said that the key is held. */
  readonly failure: LeaseholdError | null
}

/** The longest sleep of a waiter whom a release would wake: a message can be lost, once in a long while. */
const longestSleep = 5_000
/** How long a waiter counts as waiting in the store's record; it says so again after each sleep. */
const announcedMs = 2 * longestSleep
/** Pauses while the store fails: doubled with each failure. */
const shortestRetry = 50
const longestRetry = 1_000

/** The waiters of one key in this process, in order. Only the first one asks the store. */
interface Line {
  readonly waiters: Waiter[]
  /** What the first one last failed with; null if the store answered. `undefined` before it has asked. */
  failure: LeaseholdError | null | undefined
}

/** Where acquires wait: one line for each key, so that a key costs one waiter per process, however many want it. */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions
  readonly #lines = new Map<string, Line>()
  #closed = false

  constructor(options: WaitingRoomOptions) {
    this.#options = options
  }

  /** Somebody of this process waits for the key: newcomers who would wait too go behind them. */
  hasLine(key: string): boolean {
    return this.#lines.has(key)
  }

  /** The key may be free; null: any may be. Never sleeps through what happens while it asks. */
  wake(key: string | null): void {
    if (key !== null) return this.#lines.get(key)?.waiters[0]?.wake()
    for (const line of this.#lines.values()) line.waiters[0]?.wake()
  }

  /**
   * Waits in line, then asks until the key is granted or the time is up. A try that is in the air at the end of the
   * wait is awaited, for its request timeout at most.
   *
   * @returns the lease, or null if the time ended with the key held by somebody else
   * @throws LeaseholdError if it ended with the store not answering; `signal.reason`; ClosedError
   */
  async wait(key: string, acquisition: Acquisition, options: WaitOptions): Promise<Lease | null> {
    const { clock, wakeUps } = this.#options
    const line = this.#join(key)
    const waiter = new Waiter(clock, options.waitMs, options.signal)
    line.waiters.push(waiter)
    wakeUps.enter()
    try {
      if (line.waiters[0] !== waiter) await waiter.sleep(Infinity)
      else await wakeUps.ready()
      const lease = await this.#askUntilGranted(line, waiter, acquisition, options)
      if (lease !== null) return lease
      if (this.#closed) throw new ClosedError('The LockService was closed while this acquire was waiting.')
      const failure = line.failure === undefined ? options.failure : line.failure
      if (failure !== null) throw failure
      return null
    } finally {
      waiter.leave()
      wakeUps.leave()
      this.#leave(key, line, waiter)
    }
  }

  /** Ends all waits with a `ClosedError`. */
  close(): void {
    this.#closed = true
    for (const line of this.#lines.values()) for (const waiter of line.waiters) waiter.end()
  }

  async #askUntilGranted(
    line: Line,
    waiter: Waiter,
    acquisition: Acquisition,
    { waitStepMs }: WaitOptions,
  ): Promise<Lease | null> {
    let failures = 0
    while (!waiter.ended) {
      waiter.listen()
      const attempt = await acquisition.attempt(announcedMs)
      if (attempt.kind === 'granted') return attempt.lease
      if (attempt.kind === 'held') {
        line.failure = null
        failures = 0
        await waiter.sleep(this.#sleepFor(attempt.remainingMs, waitStepMs))
      } else {
        if (attempt.final) throw attempt.error
        line.failure = attempt.error
        await waiter.sleep(this.#jittered(Math.min(longestRetry, shortestRetry * 2 ** failures++)))
      }
    }
    return null
  }

  /** Until the lease would lapse; shorter where nothing would tell us that it was released. */
  #sleepFor(remainingMs: number, waitStepMs: number): number {
    const untilLapse = Math.max(1, remainingMs) + 1 + 4 * this.#options.random()
    return Math.min(untilLapse, this.#jittered(this.#options.wakeUps.live ? longestSleep : waitStepMs))
  }

  /** ± 20 %, so that the processes of a fleet part. */
  #jittered(milliseconds: number): number {
    return milliseconds * (0.8 + 0.4 * this.#options.random())
  }

  #join(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, (line = { waiters: [], failure: undefined }))
    return line
  }

  #leave(key: string, line: Line, waiter: Waiter): void {
    const wasFirst = line.waiters[0] === waiter
    line.waiters.splice(line.waiters.indexOf(waiter), 1)
    if (line.waiters.length === 0) this.#lines.delete(key)
    else if (wasFirst) line.waiters[0]?.wake()
  }
}

/** One waiting call: its end, and its sleep that can be cut short. */
class Waiter {
  readonly #clock: Clock
  readonly #signal: AbortSignal | null
  readonly #endTimer: Timer | undefined
  readonly #onAbort = (): void => this.end()
  #ended = false
  #woken = false
  #endSleep: (() => void) | undefined

  constructor(clock: Clock, waitMs: number, signal: AbortSignal | null) {
    this.#clock = clock
    this.#signal = signal
    if (waitMs !== Infinity) this.#endTimer = clock.setTimer(waitMs, () => this.end(), { keepAlive: true })
    if (signal?.aborted === true) this.#ended = true
    signal?.addEventListener('abort', this.#onAbort)
  }

  get ended(): boolean {
    return this.#ended
  }

  end(): void {
    this.#ended = true
    this.#endSleep?.()
  }

  /** From here on a {@link wake} is remembered, also one that comes before the sleep. */
  listen(): void {
    this.#woken = false
  }

  wake(): void {
    this.#woken = true
    this.#endSleep?.()
  }

  /** Sleeps until the time is over, it is woken (also since {@link listen}) or it ends. */
  async sleep(milliseconds: number): Promise<void> {
    if (this.#ended || this.#woken) return
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.#endSleep = resolve
      if (milliseconds !== Infinity) timer = this.#clock.setTimer(milliseconds, resolve, { keepAlive: true })
    })
    this.#endSleep = undefined
    timer?.cancel()
  }

  leave(): void {
    this.#endTimer?.cancel()
    this.#signal?.removeEventListener('abort', this.#onAbort)
  }
}
