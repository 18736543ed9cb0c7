import type { ChannelListener, RedisConnection, Subscription } from './clients.ts'
import { textOf } from './words.ts'

/** What the driver uses of an ioredis client. `Redis` and `Cluster` of ioredis 5 and 6 fit. */
export interface IoRedisClient {
  readonly status: string
  readonly isCluster: boolean
  readonly options: IoRedisOptions
  /** The socket of the moment. */
  readonly stream?: unknown
  call(command: string, args: string[]): Promise<unknown>
  // Typed by each version in its own way; a cluster takes its nodes first.
  duplicate(override?: object, clusterOverride?: object): IoRedisClient
  connect(): Promise<unknown>
  disconnect(): void
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  on(event: string, listener: (...args: unknown[]) => void): unknown
  off(event: string, listener: (...args: unknown[]) => void): unknown
  listeners(event: string): unknown[]
}

export interface IoRedisOptions {
  readonly keyPrefix?: string | Uint8Array | undefined
  readonly autoResendUnfulfilledCommands?: boolean | undefined
}

export function ioredisConnection(client: IoRedisClient): RedisConnection {
  return new IoRedisConnection(client)
}

class IoRedisConnection implements RedisConnection {
  readonly ownPrefix: string = ''
  readonly #client: IoRedisClient
  #isOwn = false

  constructor(client: IoRedisClient) {
    this.#client = client
  }

  get channelPrefix(): string {
    return textOf(this.#client.options.keyPrefix)
  }

  obstacle(): string | null {
    if (this.#client.status !== 'end') return null
    return 'The ioredis client was closed, or has given up reconnecting. Close it after Leasehold, and see its retryStrategy.'
  }

  async send(command: string, args: readonly string[]): Promise<unknown> {
    try {
      return await this.#client.call(command, args as string[])
    } catch (error) {
      throw withoutArguments(error)
    }
  }

  isUnwritten(error: unknown): boolean {
    if (!(error instanceof Error)) return false
    return /^Stream isn't writeable and enableOfflineQueue|^Connection in subscriber mode/.test(error.message)
  }

  /** ioredis writes what was not answered again on its next connection, unless told not to; a cluster always does. */
  wire(): unknown {
    if (this.#client.isCluster) return {}
    return this.#client.options.autoResendUnfulfilledCommands === false ? null : this.#client.stream
  }

  duplicate(): RedisConnection {
    if (this.#client.isCluster) {
      return new IoRedisConnection(this.#client.duplicate([], { lazyConnect: true }))
    }
    const copy = this.#client.duplicate({
      lazyConnect: true,
      enableAutoPipelining: false,
      enableOfflineQueue: true,
      // Done here instead: ioredis leaves the promise of its own attempt to nobody when that fails.
      autoResubscribe: false,
      // Subscribing again has to last as long as the outage does.
      maxRetriesPerRequest: null,
    })
    return new IoRedisConnection(copy)
  }

  async open(): Promise<void> {
    const client = this.#client
    this.#isOwn = true
    client.on('error', ignore)
    client.on('connect', () => unref(client.stream))
    if (client.status === 'ready') return unref(client.stream)
    if (client.status === 'wait' || client.status === 'end') await client.connect()
    else await becomesReady(client)
  }

  async subscribe(channel: string, listener: ChannelListener): Promise<Subscription> {
    const client = this.#client
    const onMessage = Object.assign(
      (from: unknown, message: unknown) => {
        if (from === channel) listener.onMessage(String(message))
      },
      { leaseholdChannel: channel },
    )
    const onReady = () => {
      client.subscribe(channel).then(
        () => listener.onBack(),
        (error: unknown) => {
          // Otherwise the connection was lost again, and there will be another time.
          if (client.status === 'ready') listener.onEnd(error)
        },
      )
    }
    const onEnd = () => listener.onEnd(new Error('The connection of the subscription was ended.'))
    const isOwn = this.#isOwn
    client.on('message', onMessage)
    client.on('end', onEnd)
    const detach = () => {
      client.off('message', onMessage)
      client.off('end', onEnd)
      client.off('ready', onReady)
    }
    try {
      await client.subscribe(channel)
    } catch (error) {
      detach()
      throw error
    }
    client.on('ready', onReady)
    return {
      async end() {
        detach()
        // A client that is only lent may listen to the same channel for another service of this process.
        const isShared = client.listeners('message').some((other) => channelOf(other) === channel)
        if (!isOwn && !isShared && client.status === 'ready') await client.unsubscribe(channel).catch(ignore)
      },
    }
  }

  async close(): Promise<void> {
    const stream = this.#client.stream as SocketLike | undefined
    this.#client.disconnect()
    if (stream === undefined || stream.closed === true) return
    const closed = new Promise<void>((resolve) => {
      stream.once('close', resolve)
    })
    // disconnect() waits for the server to say goodbye, which a hung one never does.
    stream.destroy()
    await closed
  }
}

/** ioredis hangs the whole command on its errors, and whoever logs one would log everybody's tokens. */
function withoutArguments(error: unknown): unknown {
  if (error instanceof Error) delete (error as { command?: unknown }).command
  return error
}

interface SocketLike {
  readonly closed?: boolean
  once(event: 'close', listener: () => void): unknown
  destroy(): unknown
  unref?(): unknown
}

function unref(stream: unknown): void {
  const socket = stream as SocketLike | undefined
  socket?.unref?.()
}

function becomesReady(client: IoRedisClient): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      client.off('ready', onReady)
      client.off('end', onEnd)
      if (error === undefined) resolve()
      else reject(error)
    }
    const onReady = () => settle()
    const onEnd = () => settle(new Error('The connection was ended before it was ready.'))
    client.on('ready', onReady)
    client.on('end', onEnd)
  })
}

function channelOf(listener: unknown): unknown {
  return (listener as { readonly leaseholdChannel?: unknown }).leaseholdChannel
}

function ignore(): void {}
