import { InvalidOptionError } from '../../core/errors.ts'
import { holds } from '../../core/read-options.ts'
import { ioredisConnection, type IoRedisClient } from './ioredis.ts'
import { nodeRedisConnection, type NodeRedisClient } from './node-redis.ts'

/** A client that the driver can work with: of ioredis (5, 6), or of node-redis (5, 6) for a single server. */
export type RedisClient = IoRedisClient | NodeRedisClient

/** What the driver sees of a client, whichever it is. */
export interface RedisConnection {
  /** What the driver has to put before each key itself, because the client does not for commands sent this way. */
  readonly ownPrefix: string
  /** The client's key prefix, which no client puts before channels. */
  readonly channelPrefix: string
  /** Why nothing can be sent now, and what to do about it; null if something can. */
  obstacle(): string | null
  /** Rejects with the client's own error. */
  send(command: string, args: readonly string[]): Promise<unknown>
  /** Whether this error means that the client gave the command up before it wrote it. */
  isUnwritten(error: unknown): boolean
  /** Changes when commands that were written may have been written again on another connection. */
  wire(): unknown

  /** A second connection to the same server, not opened yet. */
  duplicate(): RedisConnection
  /** Opens a connection that is the driver's own. Its errors are listened to before that. */
  open(): Promise<void>
  /** Resolves when the server has confirmed. A connection of the driver's own subscribes again after it was lost. */
  subscribe(channel: string, listener: ChannelListener): Promise<Subscription>
  /** Ends a connection that is the driver's own, at once. Never rejects. */
  close(): Promise<void>
}

export interface ChannelListener {
  onMessage(message: string): void
  /** The connection was lost, and the subscription holds on another one now. */
  onBack(): void
  /** The connection ended and will not come back. */
  onEnd(error: unknown): void
}

export interface Subscription {
  /** Stops listening; what else uses the connection goes on. Never rejects. */
  end(): Promise<void>
}

/** @throws InvalidOptionError for what is no client */
export function redisConnection(option: string, client: RedisClient): RedisConnection {
  if (holds(() => isIoRedis(client))) return ioredisConnection(client as IoRedisClient)
  if (holds(() => isNodeRedis(client))) return nodeRedisConnection(client as NodeRedisClient)
  throw new InvalidOptionError(
    option,
    `${option} must be a client of ioredis (5 or 6), such as new Redis(url) or new Cluster(nodes), or of node-redis (5 or 6) for a single server, such as createClient({ url }). Clusters, sentinel clients and pools of node-redis cannot be used.`,
  )
}

function isIoRedis(client: RedisClient): boolean {
  return has(client, 'call', 'duplicate', 'subscribe') && typeof (client as IoRedisClient).status === 'string'
}

// Only the client of a single server says whether it is subscribed; a pool, a cluster or a sentinel client does not.
function isNodeRedis(client: RedisClient): boolean {
  return (
    has(client, 'sendCommand', 'duplicate', 'subscribe') &&
    typeof (client as NodeRedisClient).isPubSubActive === 'boolean'
  )
}

function has(client: unknown, ...methods: readonly string[]): boolean {
  if (client === null || typeof client !== 'object') return false
  return methods.every((method) => typeof (client as Record<string, unknown>)[method] === 'function')
}
