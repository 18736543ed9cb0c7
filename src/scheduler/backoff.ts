import type { Clock, Timer } from '../core/clock.ts'

export interface BackoffOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly shortestMs: number
  readonly longestMs: number
}

/**
 * The pause after a failure, longer with each one in a row. Shared: whoever fails while a pause lasts waits for the end
 * of the same one, so that a store that is down hears of a node once, not once for each task.
 */
export class Backoff {
  readonly #options: BackoffOptions
  #failures = 0
  #pause: Promise<void> | undefined
  #endPause: (() => void) | undefined
  #isOver = false

  constructor(options: BackoffOptions) {
    this.#options = options
  }

  /** Nothing is to be tried again any more. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Resolves when it is time to try again; at once after {@link end}. */
  wait(): Promise<void> {
    if (this.#isOver) return Promise.resolve()
    this.#pause ??= this.#begin()
    return this.#pause
  }

  /** It worked. */
  reset(): void {
    this.#failures = 0
  }

  /** Nobody waits any more. */
  end(): void {
    this.#isOver = true
    this.#endPause?.()
  }

  async #begin(): Promise<void> {
    const { clock, random, shortestMs, longestMs } = this.#options
    const fullMs = Math.min(longestMs, shortestMs * 2 ** this.#failures)
    this.#failures++
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.#endPause = resolve
      timer = clock.setTimer(fullMs * (0.5 + random() / 2), resolve)
    })
    timer?.cancel()
    this.#pause = undefined
  }
}
