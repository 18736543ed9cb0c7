import type { TaskState } from '../driver/task-driver.ts'

/** The run of a task that is under way somewhere, as this node knows it. */
export interface SeenRun {
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  /** The text about who runs it. */
  readonly holder: string
  /** When its lease lapses unless it is renewed, on our monotonic clock. */
  readonly lapsesAt: number
  /** The store has said that it has lapsed. */
  readonly hasLapsed: boolean
  /** It was asked to stop, as far as this node has heard: not every answer says so. */
  readonly isCancelled: boolean
}

/** What an answer tells of a task; only a look at its record tells of a stop request. */
type Heard = TaskState & { readonly stop?: string | null }

/**
 * What this node knows of a task's record, from the answers that it got. Several questions may be under way at once, so
 * an answer that is older than the last one is passed over.
 */
export class TaskView {
  #mark: number | null = null
  #isPaused = false
  #orders = ''
  #running: SeenRun | null = null
  #asOf = -Infinity
  #busyUntil = -Infinity
  /** Its fence is the moment of its grant in microseconds, if not more. */
  #busySince = Infinity

  /** The last decided slot; null before the first answer. */
  get mark(): number | null {
    return this.#mark
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** The manual runs that were asked for; `''` for none. */
  get orders(): string {
    return this.#orders
  }

  get running(): SeenRun | null {
    return this.#running
  }

  /** The last moment on the store's clock at which a run is known to have been under way. */
  get busyUntil(): number {
    return this.#busyUntil
  }

  /** That run is known to have been under way all the time between these moments on the store's clock. */
  wasBusy(from: number, to: number): boolean {
    return this.#busySince <= from && to <= this.#busyUntil
  }

  /** Takes in an answer to a claim: claims of a task are made one after the other, so it is the latest word. */
  learn(state: Heard, receivedAt: number): void {
    const { now, mark, paused, orders, running, stop = null } = state
    const known = this.#running
    this.#asOf = now
    this.#mark = mark
    this.#isPaused = paused
    this.#orders = orders
    if (running !== null) {
      this.#busyUntil = now + Math.min(running.remainingMs, 0)
      this.#busySince = running.fence / 1_000
    }
    this.#running =
      running === null
        ? null
        : {
            slot: running.slot,
            attempt: running.attempt,
            fence: running.fence,
            holder: running.holder,
            lapsesAt: receivedAt + Math.max(running.remainingMs, 0),
            hasLapsed: running.remainingMs <= 0,
            isCancelled: stop !== null || (known?.fence === running.fence && known.isCancelled),
          }
  }

  /** Takes in another answer, unless it is older than what is known. */
  overhear(state: Heard, receivedAt: number): void {
    if (state.now >= this.#asOf && state.mark >= (this.#mark ?? -Infinity)) this.learn(state, receivedAt)
  }

  /** A run of our own has ended and is recorded; or the store knows nothing of it any more. */
  forgetRun(fence: number): void {
    if (this.#running?.fence === fence) this.#running = null
  }
}
