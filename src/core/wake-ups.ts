import type { DriverSession, NoticeChannel } from '../driver/driver.ts'
import { publish } from './channels.ts'
import type { Clock, Timer } from './clock.ts'

export interface WakeUpsOptions {
  readonly session: DriverSession
  readonly clock: Clock
  readonly namespace: string
  readonly requestTimeoutMs: number
  /** The key may be free now; null: any key may be, look at all. */
  readonly onWake: (key: string | null) => void
}

/** How often a channel is tested while somebody waits. */
const probeEvery = 15_000
/** How long a channel stays open after the last waiter has left, so that the next one need not open it again. */
const lingerMs = 2_000
/** Pause before a channel is opened again: doubled with each failure. */
const shortestReopen = 500
const longestReopen = 30_000

/**
 * The push channel of a service: open while somebody waits, tested with a message to itself, since a subscription can
 * succeed and hear nothing, and opened again after it went deaf. While it is not {@link live}, waiters poll.
 */
export class WakeUps {
  readonly #options: WakeUpsOptions
  #waiters = 0
  #channel: NoticeChannel | undefined
  #opening: Promise<void> | undefined
  #live = false
  #failures = 0
  #timer: Timer | undefined
  #closed = false

  constructor(options: WakeUpsOptions) {
    this.#options = options
  }

  /** A release anywhere will wake us. */
  get live(): boolean {
    return this.#live
  }

  /** One more waiter. */
  enter(): void {
    this.#waiters++
    if (this.#waiters === 1 && this.#live) this.#setTimer(probeEvery, () => this.#probe())
    // With a timer set it is deaf, and waits before it tries again.
    if (this.#channel === undefined && this.#timer === undefined) this.#open()
  }

  /** One waiter less. */
  leave(): void {
    this.#waiters--
    if (this.#waiters === 0 && this.#live) this.#setTimer(lingerMs, () => void this.#shut())
  }

  /** Resolves once the channel is confirmed, is known not to be had, or takes too long to wait for. */
  async ready(): Promise<void> {
    if (this.#live || this.#opening === undefined) return
    await withinTime(
      this.#opening,
      Math.min(1_000, this.#options.requestTimeoutMs),
      this.#options.clock,
    ).catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#setTimer(null)
    const { clock, requestTimeoutMs } = this.#options
    if (this.#opening !== undefined) await withinTime(this.#opening, requestTimeoutMs, clock).catch(() => {})
    await this.#shut()
  }

  #open(): void {
    const { listen } = this.#options.session
    if (listen === undefined || this.#opening !== undefined || this.#closed) return
    this.#opening = this.#openAndProbe(listen).finally(() => (this.#opening = undefined))
  }

  async #openAndProbe(listen: NonNullable<DriverSession['listen']>): Promise<void> {
    const { session, clock, onWake, requestTimeoutMs } = this.#options
    let channel: NoticeChannel | undefined
    try {
      channel = await listen.call(session, {
        onNotice: (notice) => {
          if (notice.kind === 'released') onWake(notice.key)
        },
        onDeaf: (error) => this.#deaf(channel, error),
      })
      this.#channel = channel
      await withinTime(channel.probe(), requestTimeoutMs, clock)
      if (this.#channel !== channel || this.#closed) return await channel.close()
      this.#live = true
      this.#failures = 0
      if (this.#waiters > 0) this.#setTimer(probeEvery, () => this.#probe())
      else this.#setTimer(lingerMs, () => void this.#shut())
      // Who has been polling meanwhile must look once more, now that the subscription is known to hear.
      onWake(null)
    } catch (error) {
      this.#deaf(channel, error)
    }
  }

  #probe(): void {
    const channel = this.#channel
    if (channel === undefined) return
    const { clock, requestTimeoutMs } = this.#options
    withinTime(channel.probe(), requestTimeoutMs, clock).then(
      () => {
        if (this.#channel === channel && this.#waiters > 0) this.#setTimer(probeEvery, () => this.#probe())
      },
      (error: unknown) => this.#deaf(channel, error),
    )
  }

  #deaf(channel: NoticeChannel | undefined, error: unknown): void {
    if (channel !== this.#channel) return
    const { namespace, onWake } = this.#options
    this.#channel = undefined
    this.#live = false
    void channel?.close()
    if (this.#closed) return
    publish('leasehold:deaf', () => ({ namespace, error }))
    const pauseMs = Math.min(longestReopen, shortestReopen * 2 ** this.#failures++)
    this.#setTimer(pauseMs, () => {
      if (this.#waiters > 0) this.#open()
    })
    onWake(null)
  }

  async #shut(): Promise<void> {
    const channel = this.#channel
    this.#channel = undefined
    this.#live = false
    this.#failures = 0
    await channel?.close()
  }

  /** One timer at a time: for the next probe, for opening again, or for closing. */
  #setTimer(delayMs: number | null, callback: () => void = () => {}): void {
    this.#timer?.cancel()
    this.#timer = undefined
    if (delayMs === null || this.#closed) return
    this.#timer = this.#options.clock.setTimer(delayMs, () => {
      this.#timer = undefined
      callback()
    })
  }
}

/** Rejects if a promise takes longer; its later outcome is ignored. */
async function withinTime<Value>(
  promise: Promise<Value>,
  milliseconds: number,
  clock: Clock,
): Promise<Value> {
  let timer: Timer | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = clock.setTimer(milliseconds, () => reject(new Error(`No answer within ${milliseconds} ms.`)))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    timer?.cancel()
  }
}
