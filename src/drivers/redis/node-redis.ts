import type { ChannelListener, RedisConnection, Subscription } from './clients.ts'
import { textOf } from './words.ts'

/** What the driver uses of a node-redis client. What `createClient()` of node-redis 5 and 6 returns fits. */
export interface NodeRedisClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly isPubSubActive: boolean
  // node-redis 6 has a key prefix among them, node-redis 5 nothing that matters here.
  readonly options?: object | undefined
  sendCommand(args: readonly string[], options?: object): Promise<unknown>
  // Overrides are typed by each version in its own way.
  duplicate(overrides?: object): NodeRedisClient
  connect(): Promise<unknown>
  destroy(): void
  unref(): void
  subscribe(channel: string, listener: (message: string) => unknown): Promise<void>
  unsubscribe(channel: string, listener: (message: string) => unknown): Promise<void>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
}

export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  return new NodeRedisConnection(client)
}

class NodeRedisConnection implements RedisConnection {
  readonly #client: NodeRedisClient
  #isOwn = false

  constructor(client: NodeRedisClient) {
    this.#client = client
  }

  /** `sendCommand` leaves keys as they are. */
  get ownPrefix(): string {
    const options: { readonly keyPrefix?: string | Uint8Array } = this.#client.options ?? {}
    return textOf(options.keyPrefix)
  }

  get channelPrefix(): string {
    return this.ownPrefix
  }

  obstacle(): string | null {
    if (this.#client.isOpen) return null
    return 'The node-redis client is not connected. Call its connect() before using Leasehold, and close it after Leasehold.'
  }

  send(command: string, args: readonly string[]): Promise<unknown> {
    // A client can be made to answer in other types; these answers are parsed from the ordinary ones.
    return this.#client.sendCommand([command, ...args], { typeMapping: {} })
  }

  /** node-redis never writes a command twice, and its errors of connecting reach only what it had not written. */
  isUnwritten(error: unknown): boolean {
    if (!(error instanceof Error)) return false
    if ((error as NodeJS.ErrnoException).syscall === 'connect') return true
    return ['The client is closed', 'The client is offline', 'The queue is full'].includes(error.message)
  }

  wire(): unknown {
    return null
  }

  duplicate(): RedisConnection {
    return new NodeRedisConnection(this.#client.duplicate())
  }

  async open(): Promise<void> {
    const client = this.#client
    this.#isOwn = true
    client.on('error', ignore)
    client.unref()
    if (client.isReady) return
    const ready = becomesReady(client)
    // Its own attempts go on for as long as the outage does; the first one decides here.
    if (!client.isOpen) client.connect().catch(ignore)
    await ready
  }

  async subscribe(channel: string, listener: ChannelListener): Promise<Subscription> {
    const client = this.#client
    const onMessage = (message: string) => listener.onMessage(message)
    // Each loss of the connection is an error; the last one leaves the client closed.
    const onError = (error: unknown) => {
      if (!client.isOpen) listener.onEnd(error)
    }
    const onEnd = () => listener.onEnd(new Error('The connection of the subscription was ended.'))
    // It says so when it has subscribed again.
    const onReady = () => listener.onBack()
    client.on('error', onError)
    client.on('end', onEnd)
    const detach = () => {
      client.off('error', onError)
      client.off('end', onEnd)
      client.off('ready', onReady)
    }
    try {
      await client.subscribe(channel, onMessage)
    } catch (error) {
      detach()
      throw error
    }
    client.on('ready', onReady)
    const isOwn = this.#isOwn
    return {
      async end() {
        detach()
        if (!isOwn && client.isReady) await client.unsubscribe(channel, onMessage).catch(ignore)
      },
    }
  }

  async close(): Promise<void> {
    try {
      this.#client.destroy()
    } catch {
      // It was closed before.
    }
  }
}

function becomesReady(client: NodeRedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: unknown) => {
      client.off('ready', onReady)
      client.off('error', onError)
      client.off('end', onEnd)
      if (error === undefined) resolve()
      else reject(error)
    }
    const onReady = () => settle()
    const onError = (error: unknown) => settle(error)
    const onEnd = () => settle(new Error('The connection was ended before it was ready.'))
    client.on('ready', onReady)
    client.on('error', onError)
    client.on('end', onEnd)
  })
}

function ignore(): void {}
