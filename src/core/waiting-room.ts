import type { AbortListeners } from './abort-listeners.ts'
import type { Acquisition, Attempt } from './acquisition.ts'
import type { Clock } from './clock.ts'
import { ClosedError, type LeaseholdError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { ResolvedAcquireOptions } from './options.ts'
import { Waiter } from './waiter.ts'
import type { WakeUps } from './wake-ups.ts'

export interface WaitingRoomOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly wakeUps: WakeUps
  readonly abortListeners: AbortListeners
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
  /** The try that is in the air. */
  asking: Promise<Attempt> | null
  /** What the last try found out: held by somebody, or the error. Null before the first answer. */
  known: 'held' | LeaseholdError | null
  /** How many tries were begun, and which of them ended last. */
  begun: number
  ended: number
}

/** Where acquires wait: one line for each key, so that a key costs one waiter per process, however many want it. */
export class WaitingRoom {
  readonly #options: WaitingRoomOptions
  readonly #lines = new Map<string, Line>()
  #closed = false

  constructor(options: WaitingRoomOptions) {
    this.#options = options
  }

  /** The key may be free; null: any may be. Never sleeps through what happens while it asks. */
  wake(key: string | null): void {
    if (key !== null) return this.#lines.get(key)?.waiters[0]?.wake()
    for (const line of this.#lines.values()) line.waiters[0]?.wake()
  }

  /**
   * Takes its turn in the line of the key, then asks until it is granted or the time is up. A try that is in the air at
   * the end of the wait is awaited, for its request timeout at most, by those behind the first one as well: without its
   * answer they would not know that the key is held.
   *
   * @returns the lease, or null if the time ended with the key held by somebody else, or the signal was aborted
   * @throws LeaseholdError if it ended with the store not answering; ClosedError
   */
  async wait(key: string, acquisition: Acquisition, options: ResolvedAcquireOptions): Promise<Lease | null> {
    const { clock, abortListeners } = this.#options
    const line = this.#lineOf(key)
    const waiter = new Waiter(clock, options.waitMs, options.signal, abortListeners)
    line.waiters.push(waiter)
    const { begun } = line
    // What the line knows may be older than the question, and the store down or the key free by now.
    const isInformed = (): boolean => line.ended > begun
    try {
      const foundNobody = line.waiters[0] === waiter
      if (!foundNobody) await waiter.sleep(Infinity)
      if (line.waiters[0] === waiter) {
        const lease = await this.#ask(line, waiter, acquisition, options, foundNobody, isInformed)
        if (lease !== null) return lease
      } else if (!waiter.isCancelled) {
        await line.asking
        if (!isInformed()) return await acquisition.attemptOnce()
      }
      if (this.#closed) throw new ClosedError('The LockService was closed while this acquire was waiting.')
      if (waiter.isCancelled || line.known === 'held' || line.known === null) return null
      throw line.known
    } finally {
      waiter.leave()
      this.#leave(key, line, waiter)
    }
  }

  /** Ends all waits with a `ClosedError`. */
  close(): void {
    this.#closed = true
    for (const line of this.#lines.values()) for (const waiter of line.waiters) waiter.cancel()
  }

  /** Asks as the first in line. The first try of all is a plain one: most keys are free, and nobody has to be told. */
  async #ask(
    line: Line,
    waiter: Waiter,
    acquisition: Acquisition,
    { lease: { waitStepMs } }: ResolvedAcquireOptions,
    plainFirst: boolean,
    isInformed: () => boolean,
  ): Promise<Lease | null> {
    const { wakeUps } = this.#options
    let failures = 0
    let isListening = !plainFirst
    if (isListening) await this.#listen(waiter)
    try {
      // At least once, or there would be no telling whether it is held.
      while (!waiter.isCancelled && !(waiter.isOver && isInformed())) {
        waiter.listen()
        const attempt = await this.#try(line, acquisition, isListening ? announcedMs : 0)
        if (attempt.kind === 'granted') return attempt.lease
        if (attempt.kind === 'unavailable') {
          if (attempt.final) throw attempt.error
          await waiter.sleep(this.#jittered(Math.min(longestRetry, shortestRetry * 2 ** failures++)))
        } else if (isListening) {
          failures = 0
          await waiter.sleep(this.#sleepFor(attempt.remainingMs, waitStepMs))
        } else if (!waiter.isOver) {
          isListening = true
          await this.#listen(waiter)
        }
      }
      return null
    } finally {
      if (isListening) wakeUps.leave()
    }
  }

  async #listen(waiter: Waiter): Promise<void> {
    const { wakeUps } = this.#options
    wakeUps.enter()
    await Promise.race([wakeUps.ready(), waiter.over])
  }

  #try(line: Line, acquisition: Acquisition, waitingMs: number): Promise<Attempt> {
    const number = ++line.begun
    const asking = acquisition.attempt(waitingMs).then((attempt) => {
      line.asking = null
      line.ended = number
      line.known = attempt.kind === 'unavailable' ? attempt.error : 'held'
      return attempt
    })
    line.asking = asking
    return asking
  }

  /** Until the lease would lapse; shorter where nothing would tell us that it was released. */
  #sleepFor(remainingMs: number, waitStepMs: number): number {
    const untilLapse = (remainingMs > 1 ? remainingMs : 1) + 1 + 4 * this.#options.random()
    return Math.min(untilLapse, this.#jittered(this.#options.wakeUps.live ? longestSleep : waitStepMs))
  }

  /** ± 20 %, so that the processes of a fleet part. */
  #jittered(milliseconds: number): number {
    return milliseconds * (0.8 + 0.4 * this.#options.random())
  }

  #lineOf(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined)
      this.#lines.set(key, (line = { waiters: [], asking: null, known: null, begun: 0, ended: 0 }))
    return line
  }

  #leave(key: string, line: Line, waiter: Waiter): void {
    const wasFirst = line.waiters[0] === waiter
    line.waiters.splice(line.waiters.indexOf(waiter), 1)
    if (line.waiters.length === 0) this.#lines.delete(key)
    else if (wasFirst) line.waiters[0]?.wake()
  }
}
