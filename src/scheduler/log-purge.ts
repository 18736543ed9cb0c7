import type { Timer } from '../core/clock.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import { reportError } from './report-error.ts'

/** How often old rows are looked for. */
const intervalMs = 600_000
/** The most rows that one call deletes: a store that does one thing at a time must not be held up. */
const portion = 500
/** The pause before the next call where one was not enough. */
const pauseMs = 1_000

/**
 * Deletes old rows of the run log in the background, so that it does not grow for ever. Every process of the fleet does
 * it, at times of its own: one that finds nothing costs the store one call.
 */
export class LogPurge {
  readonly #context: ServiceContext
  readonly #retentionMs: number
  #timer: Timer | undefined
  /** When to look next, on the monotonic clock; kept when closed, so that opening again does not look sooner. */
  #dueAt: number | undefined
  #isOpen = false

  constructor(context: ServiceContext, retentionMs: number) {
    this.#context = context
    this.#retentionMs = retentionMs
  }

  open(): void {
    const { clock, random } = this.#context.options
    // Processes that were started together do not purge together, and one that lives for minutes has its turn as well.
    this.#dueAt ??= clock.monotonic() + random() * intervalMs
    this.#isOpen = true
    this.#plan()
  }

  /** Makes no further call; idempotent. What is in the air ends by itself. */
  close(): void {
    this.#isOpen = false
    this.#timer?.cancel()
  }

  async #purge(): Promise<void> {
    const { options, session } = this.#context
    const { clock } = options
    const request = { retentionMs: this.#retentionMs, limit: portion }
    this.#dueAt = clock.monotonic() + intervalMs
    try {
      const deleted = await askStore(this.#context, 'purge the run log', (call) =>
        session.tasks.purge(request, call),
      )
      if (deleted >= portion) this.#dueAt = clock.monotonic() + pauseMs
    } catch (error) {
      reportError(this.#context, error)
    }
    this.#plan()
  }

  #plan(): void {
    if (!this.#isOpen || this.#dueAt === undefined) return
    const { clock } = this.#context.options
    this.#timer?.cancel()
    this.#timer = clock.setTimer(Math.max(0, this.#dueAt - clock.monotonic()), () => void this.#purge())
  }
}
