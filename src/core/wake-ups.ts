import type { DriverSession, NoticeChannel } from '../driver/driver.ts'
import { publish } from './channels.ts'
import type { Clock, Timer } from './clock.ts'
import { withinTime } from './within-time.ts'

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

/** One subscription, from its request on. Replaced by another one when it is given up, however it ends. */
interface Subscription {
  /** There once the store has confirmed it. */
  channel: NoticeChannel | undefined
  /** Resolves when it is live or was given up. Never rejects. */
  ready: Promise<void>
  /** Resolves when it was given up. */
  readonly over: Promise<void>
  readonly giveUp: () => void
}

/**
 * The push channel of a service: open while somebody waits, tested with a message to itself, since a subscription can
 * succeed and hear nothing, and opened again after it went deaf. While it is not {@link live}, waiters poll.
 */
export class WakeUps {
  readonly #options: WakeUpsOptions
  #waiters = 0
  #subscription: Subscription | undefined
  #live = false
  /** When the channel last proved that it hears. */
  #heardAt = -Infinity
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
    if (this.#waiters === 1 && this.#live) this.#planProbe()
    // With a timer set it is deaf, and waits before it tries again.
    if (this.#subscription === undefined && this.#timer === undefined) this.#open()
  }

  /** One waiter less. */
  leave(): void {
    this.#waiters--
    if (this.#waiters === 0 && this.#live) this.#planShutting()
  }

  /** Resolves once the channel is confirmed, is known not to be had, or takes too long to wait for. */
  async ready(): Promise<void> {
    if (this.#live || this.#subscription === undefined) return
    const { clock, requestTimeoutMs } = this.#options
    await withinTime(clock, Math.min(1_000, requestTimeoutMs), this.#subscription.ready).catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#setTimer(null)
    const { clock, requestTimeoutMs } = this.#options
    // What is not open yet would be opened afterwards.
    if (this.#subscription !== undefined && this.#subscription.channel === undefined) {
      await withinTime(clock, requestTimeoutMs, this.#subscription.ready).catch(() => {})
    }
    await this.#shut()
  }

  #open(): void {
    const { listen } = this.#options.session
    if (listen === undefined || this.#subscription !== undefined || this.#closed) return
    const subscription = newSubscription()
    this.#subscription = subscription
    subscription.ready = this.#subscribe(subscription, listen).catch((error: unknown) =>
      this.#deaf(subscription, error),
    )
  }

  async #subscribe(subscription: Subscription, listen: NonNullable<DriverSession['listen']>): Promise<void> {
    const { session, clock, onWake, requestTimeoutMs } = this.#options
    const opening = listen.call(session, {
      onNotice: (notice) => {
        if (subscription !== this.#subscription) return
        this.#heardAt = clock.monotonic()
        if (notice.kind === 'released') onWake(notice.key)
        if (notice.kind === 'missed') onWake(null)
      },
      onDeaf: (error) => this.#deaf(subscription, error),
    })
    const taken = opening.then(async (channel) => {
      subscription.channel = channel
      // It was given up while it was being opened.
      if (subscription !== this.#subscription) await channel.close().catch(() => {})
      return channel
    })
    const { over } = subscription
    const channel = await withinTime(clock, requestTimeoutMs, Promise.race([taken, over]))
    if (subscription !== this.#subscription) return
    await withinTime(clock, requestTimeoutMs, Promise.race([channel?.probe(), over]))
    if (subscription !== this.#subscription) return
    this.#live = true
    this.#heardAt = clock.monotonic()
    this.#failures = 0
    if (this.#waiters > 0) this.#planProbe()
    else this.#planShutting()
    // Who has been polling meanwhile must look once more, now that the subscription is known to hear.
    onWake(null)
  }

  #planProbe(): void {
    const { clock } = this.#options
    const dueInMs = this.#heardAt + probeEvery - clock.monotonic()
    this.#setTimer(Math.max(0, dueInMs), () => {
      if (this.#heardAt + probeEvery > clock.monotonic()) this.#planProbe()
      else void this.#probe()
    })
  }

  #planShutting(): void {
    this.#setTimer(lingerMs, () => void this.#shut())
  }

  async #probe(): Promise<void> {
    const subscription = this.#subscription
    if (subscription === undefined) return
    const { channel, over } = subscription
    const { clock, requestTimeoutMs } = this.#options
    try {
      await withinTime(clock, requestTimeoutMs, Promise.race([channel?.probe(), over]))
    } catch (error) {
      return this.#deaf(subscription, error)
    }
    if (subscription !== this.#subscription) return
    this.#heardAt = clock.monotonic()
    if (this.#waiters > 0) this.#planProbe()
  }

  #deaf(subscription: Subscription, error: unknown): void {
    if (subscription !== this.#subscription) return
    const { namespace, onWake } = this.#options
    void this.#giveUp()
    if (this.#closed) return
    publish('leasehold:deaf', () => ({ namespace, error }))
    const pauseMs = Math.min(longestReopen, shortestReopen * 2 ** this.#failures++)
    this.#setTimer(pauseMs, () => {
      if (this.#waiters > 0) this.#open()
    })
    onWake(null)
  }

  async #shut(): Promise<void> {
    this.#failures = 0
    await this.#giveUp()
  }

  async #giveUp(): Promise<void> {
    const subscription = this.#subscription
    this.#subscription = undefined
    this.#live = false
    subscription?.giveUp()
    await subscription?.channel?.close().catch(() => {})
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

function newSubscription(): Subscription {
  let giveUp = (): void => {}
  const over = new Promise<void>((resolve) => (giveUp = resolve))
  return { channel: undefined, ready: Promise.resolve(), over, giveUp }
}
