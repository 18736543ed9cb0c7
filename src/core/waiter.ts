import type { AbortListeners } from './abort-listeners.ts'
import type { Clock, Timer } from './clock.ts'

/** One waiting call: its end, and its sleep that can be cut short. */
export class Waiter {
  /** Resolves when the wait ends, for whatever reason. */
  readonly over: Promise<void>
  readonly #clock: Clock
  readonly #endTimer: Timer | undefined
  readonly #stopListening: (() => void) | undefined
  #isOver = false
  #isCancelled = false
  #isWoken = false
  #resolveOver: () => void = () => {}
  #endSleep: (() => void) | undefined

  constructor(clock: Clock, waitMs: number, signal: AbortSignal | null, listeners: AbortListeners) {
    this.#clock = clock
    this.over = new Promise((resolve) => (this.#resolveOver = resolve))
    if (waitMs !== Infinity) this.#endTimer = clock.setTimer(waitMs, () => this.#end(), { keepAlive: true })
    if (signal === null) return
    if (signal.aborted) this.cancel()
    else this.#stopListening = listeners.add(signal, () => this.cancel())
  }

  /** The time is up, or it was cancelled. */
  get isOver(): boolean {
    return this.#isOver
  }

  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Ends the wait before its time: nobody wants to know any more. */
  cancel(): void {
    this.#isCancelled = true
    this.#end()
  }

  /** From here on a {@link wake} is remembered, also one that comes before the sleep. */
  listen(): void {
    this.#isWoken = false
  }

  wake(): void {
    this.#isWoken = true
    this.#endSleep?.()
  }

  /** Sleeps until the time is over, it is woken (also since {@link listen}) or the wait ends. */
  async sleep(milliseconds: number): Promise<void> {
    if (this.#isOver || this.#isWoken) return
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
    this.#stopListening?.()
  }

  #end(): void {
    this.#isOver = true
    this.#endSleep?.()
    this.#resolveOver()
  }
}
