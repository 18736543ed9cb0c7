import { Alarm } from '../core/alarm.ts'
import type { Clock } from '../core/clock.ts'
import type { StoreTime } from './store-time.ts'

/** Something that is to be done at an instant of the store's time. */
export interface AgendaItem {
  /** The instant; `Infinity` for none. */
  readonly dueAt: number
  /** Called when it has come, with `dueAt` as it was; sets {@link dueAt} anew before it returns. Never throws. */
  due(): void
}

export interface AgendaOptions {
  readonly clock: Clock
  readonly storeTime: StoreTime
  readonly keepAlive: boolean
  /** The machine seems to have been suspended, or its wall clock was set. */
  readonly onClockJump: () => void
}

/** The longest sleep: clocks drift, and timers stand still while a machine is suspended. */
const longestSleep = 60_000
/** Clocks that part by more between two looks did not just drift. */
const jump = 1_000

/**
 * When which task is due, on the store's clock: one timer for all of a node, set to the earliest but at most a minute
 * ahead. What is due at one instant is called in one go, so that its claims travel together.
 */
export class Agenda {
  readonly #options: AgendaOptions
  readonly #items = new Set<AgendaItem>()
  readonly #alarm: Alarm
  #isOpen = false
  #wallLead = 0

  constructor(options: AgendaOptions) {
    const { clock, keepAlive } = options
    this.#options = options
    this.#alarm = new Alarm(clock, () => this.#look(), { keepAlive })
  }

  open(): void {
    this.#isOpen = true
    this.#wallLead = this.#readWallLead()
    this.rearm()
  }

  close(): void {
    this.#isOpen = false
    this.#items.clear()
    this.#alarm.off()
  }

  /** Adds an item, or looks again at one whose time has changed. */
  watch(item: AgendaItem): void {
    if (!this.#isOpen) return
    this.#items.add(item)
    this.#armFor(item.dueAt)
  }

  /** Sets the timer anew: the store's time has moved against ours. */
  rearm(): void {
    if (!this.#isOpen) return
    this.#alarm.off()
    let next = Infinity
    for (const item of this.#items) next = Math.min(next, item.dueAt)
    this.#armFor(next)
  }

  #look(): void {
    const { storeTime, onClockJump } = this.#options
    const wallLead = this.#readWallLead()
    if (Math.abs(wallLead - this.#wallLead) > jump) onClockJump()
    this.#wallLead = wallLead
    const now = storeTime.now() - storeTime.wakeLateMs
    for (const item of this.#items) {
      if (item.dueAt <= now) item.due()
    }
    this.rearm()
  }

  #armFor(dueAt: number): void {
    const { storeTime } = this.#options
    const inMs = storeTime.isKnown ? dueAt + storeTime.wakeLateMs - storeTime.now() : Infinity
    const delayMs = Math.min(Math.max(Math.ceil(inMs), 0), longestSleep)
    this.#alarm.setIn(delayMs)
  }

  #readWallLead(): number {
    const { clock } = this.#options
    return clock.wall() - clock.monotonic()
  }
}
