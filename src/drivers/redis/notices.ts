import { randomUUID } from 'node:crypto'
import { DriverFault } from '../../core/errors.ts'
import type { Notice, NoticeChannel, NoticeListener } from '../../driver/driver.ts'
import type { ChannelListener, Subscription } from './clients.ts'
import type { ExtraConnection } from './extra-connection.ts'

/** What a push channel needs: where to listen, on what, and how to publish a probe. */
export interface ChannelMeans {
  readonly channel: string
  readonly connect: () => Promise<ExtraConnection>
  readonly publish: (message: string) => Promise<unknown>
}

/**
 * The push channel of a namespace.
 *
 * Its messages are one letter for what they are, then what they are about: `r<key>` released, `c<version>` control,
 * `p<id>` a probe. The scripts publish the first two.
 */
export class RedisNoticeChannel implements NoticeChannel, ChannelListener {
  readonly #means: ChannelMeans
  readonly #listener: NoticeListener
  readonly #probes = new Map<string, { resolve(): void; reject(error: unknown): void }>()
  #extra: ExtraConnection | undefined
  #subscription: Subscription | undefined
  #closed: Promise<void> | undefined
  #isDeaf = false

  constructor(means: ChannelMeans, listener: NoticeListener) {
    this.#means = means
    this.#listener = listener
  }

  /**
   * Subscribes, and resolves when the server has confirmed it. Leaves nothing open if it rejects, as it does when the
   * channel is closed meanwhile.
   */
  async open(): Promise<void> {
    try {
      const extra = await this.#means.connect()
      this.#extra = extra
      this.#assertOpen()
      if (extra.isOwn) await extra.connection.open()
      this.#assertOpen()
      this.#subscription = await extra.connection.subscribe(this.#means.channel, this)
      this.#assertOpen()
    } catch (error) {
      this.#closed ??= Promise.resolve()
      await this.#end()
      throw new DriverFault(
        'not-sent',
        `Redis does not push: ${error instanceof Error ? error.message : String(error)} Waiters ask from time to time instead. See docs/drivers/redis.md for the connection and the rights that push needs.`,
        { cause: error },
      )
    }
  }

  onMessage(message: string): void {
    if (this.#closed !== undefined) return
    const about = message.slice(1)
    if (message.startsWith('p')) this.#probes.get(about)?.resolve()
    const notice = toNotice(message.charAt(0), about)
    if (notice !== null) this.#listener.onNotice(notice)
  }

  onBack(): void {
    if (this.#closed === undefined && !this.#isDeaf) this.#listener.onNotice({ kind: 'missed' })
  }

  onEnd(error: unknown): void {
    if (this.#closed !== undefined || this.#isDeaf) return
    this.#isDeaf = true
    this.#failProbes('The subscription ended.', error)
    this.#listener.onDeaf(error)
  }

  async probe(): Promise<void> {
    if (this.#closed !== undefined || this.#isDeaf) {
      throw new DriverFault('not-sent', 'This push channel has ended. Open another one with listen().')
    }
    const id = randomUUID()
    const heard = new Promise<void>((resolve, reject) => {
      this.#probes.set(id, { resolve, reject })
    })
    try {
      await Promise.all([this.#means.publish(`p${id}`), heard])
    } finally {
      this.#probes.delete(id)
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#end()
    return this.#closed
  }

  async #end(): Promise<void> {
    this.#failProbes('This push channel was closed.')
    await this.#subscription?.end()
    if (this.#extra?.isOwn === true) await this.#extra.connection.close()
  }

  #assertOpen(): void {
    if (this.#closed !== undefined) throw new Error('The channel was closed while it was opened.')
  }

  #failProbes(why: string, cause?: unknown): void {
    for (const { reject } of this.#probes.values()) reject(new DriverFault('unknown', why, { cause }))
  }
}

function toNotice(kind: string, about: string): Notice | null {
  if (kind === 'r') return { kind: 'released', key: about }
  if (kind !== 'c') return null
  const version = Number(about)
  return Number.isSafeInteger(version) ? { kind: 'control', version } : null
}
