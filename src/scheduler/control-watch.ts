import { type Moment, momentOf, type Timer } from '../core/clock.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import type { StoreTime } from './store-time.ts'

export interface ControlWatchOptions {
  readonly context: ServiceContext
  readonly storeTime: StoreTime
  readonly everyMs: number
  /** Something was paused, resumed or edited by somebody else. */
  readonly onChange: () => void
}

/** Asks for the namespace's control version now and then: one cheap read for all tasks of a process. */
export class ControlWatch {
  readonly #options: ControlWatchOptions
  #timer: Timer | undefined
  #version = 0
  #isOpen = false

  constructor(options: ControlWatchOptions) {
    this.#options = options
  }

  open(): void {
    this.#isOpen = true
    this.#plan()
  }

  close(): void {
    this.#isOpen = false
    this.#timer?.cancel()
  }

  async #look(): Promise<void> {
    const { context, storeTime, onChange } = this.#options
    const { tasks } = context.session
    let sentAt: Moment = momentOf(context.options.clock)
    try {
      const { version, now } = await askStore(context, 'look for control requests', (call) => {
        sentAt = momentOf(context.options.clock)
        return tasks.poll(call)
      })
      if (!this.#isOpen) return
      storeTime.note(sentAt, now)
      // What was asked for between the first registration and the first look counts as news, too.
      const isNews = this.#version !== version
      this.#version = version
      if (isNews) onChange()
    } catch {
      // Whoever needs the store tells that it is away; the next look is soon.
    } finally {
      this.#plan()
    }
  }

  #plan(): void {
    if (!this.#isOpen) return
    const { context, everyMs } = this.#options
    this.#timer = context.options.clock.setTimer(everyMs, () => void this.#look())
  }
}
