import { DriverFault, requireOption } from '../../core/errors.ts'
import { readOptions } from '../../core/read-options.ts'
import type { CallOptions, Driver, DriverSession, NoticeListener } from '../../driver/driver.ts'
import { redisConnection, type RedisClient, type RedisConnection } from './clients.ts'
import { makeConnection, RetryConnection, type ConnectionSource } from './extra-connection.ts'
import { assertReachable, sendCommand } from './faults.ts'
import { redisKeys } from './keys.ts'
import { RedisLocks } from './locks.ts'
import { RedisNoticeChannel } from './notices.ts'
import { RedisTasks } from './tasks.ts'

export type { RedisClient } from './clients.ts'
export type { ConnectionSource } from './extra-connection.ts'
export type { IoRedisClient, IoRedisOptions } from './ioredis.ts'
export type { NodeRedisClient } from './node-redis.ts'

export interface RedisDriverOptions {
  /**
   * What the names of all keys begin with, for applications that share a database. Another prefix is another store.
   * 1 to 64 letters, digits or any of `_ - . : /`. Default `'leasehold'`.
   */
  readonly prefix?: string | undefined
  /**
   * How long Redis keeps the record of a released or expired key, in milliseconds. Longer refuses a delayed duplicate
   * of the last acquire for longer; shorter spares memory where many different keys are locked once (some 200 bytes
   * each). Fences go on rising either way. Default 60,000, at least 1,000, at most 86,400,000.
   */
  readonly retention?: number | undefined
  /**
   * Whether a release wakes those who wait in other processes. Needs a second connection while somebody waits. Without
   * it waiters ask from time to time. Default `true`.
   */
  readonly push?: boolean | undefined
  /**
   * The connection for the subscription, in place of `client.duplicate()`: a connected client that stays yours, or a
   * function that makes one, which the driver then opens and closes.
   */
  readonly subscriber?: ConnectionSource | undefined
  /**
   * A second connection for calls that are made again because the first one hung, so that leases survive a connection
   * that is stuck. `true` for a duplicate of the client, opened when it is first needed and kept until the service is
   * closed; or a client or function as for `subscriber`. Default `false`: everything goes through the one client.
   */
  readonly retryConnection?: boolean | ConnectionSource | undefined
}

/**
 * Locks and tasks in Redis, over a client that is yours: the driver never connects or closes it. For ioredis 5 and 6
 * with a single server, Sentinels or a Cluster, and for node-redis 5 and 6 with a single server.
 *
 * @throws InvalidOptionError for something that is no such client, and for an option out of range
 *
 * @example
 * const client = new Redis(process.env.REDIS_URL)
 * const locks = new LockService({ driver: redisDriver(client), namespace: 'prod' })
 */
export function redisDriver(client: RedisClient, options: RedisDriverOptions = {}): Driver {
  const main = redisConnection('client', client)
  const resolved = resolveRedisDriverOptions(options)
  return {
    name: 'redis',
    abilities: {
      push: resolved.push,
      clock: 'server',
      reach: 'network',
      minTtlMs: 1,
      // Redis does nothing else while a script runs: 500 leases take some 3 ms.
      maxBatch: 500,
    },
    open: (namespace) => openSession(namespace, main, resolved),
  }
}

function openSession(
  namespace: string,
  main: RedisConnection,
  options: ResolvedRedisDriverOptions,
): DriverSession {
  const { prefix, retentionMs, subscriber, retryConnection } = options
  const keys = redisKeys(prefix, namespace)
  const channel = main.channelPrefix + keys.channel
  const channels = new Set<RedisNoticeChannel>()
  let isClosed = false

  const retry =
    retryConnection === false
      ? null
      : new RetryConnection(() => makeConnection('retryConnection', retryConnection, main), main)
  const connect = async ({ attempt }: CallOptions) => (retry !== null && attempt > 1 ? retry.get() : main)

  const listen = async (listener: NoticeListener) => {
    if (isClosed) throw new DriverFault('not-sent', 'This session was closed. Open another one.')
    assertReachable(main)
    const opened = new RedisNoticeChannel(
      {
        channel,
        connect: () => makeConnection('subscriber', subscriber, main),
        publish: (message) => sendCommand(main, 'publish', [channel, message]),
      },
      listener,
    )
    channels.add(opened)
    try {
      await opened.open()
    } catch (error) {
      channels.delete(opened)
      throw error
    }
    return {
      probe: () => opened.probe(),
      close: async () => {
        channels.delete(opened)
        await opened.close()
      },
    }
  }

  return {
    locks: new RedisLocks(connect, keys, retentionMs),
    tasks: new RedisTasks(connect, keys),
    listen: options.push ? listen : undefined,
    async close() {
      isClosed = true
      await Promise.all([...channels].map((opened) => opened.close()))
      channels.clear()
      await retry?.close()
    },
  }
}

interface ResolvedRedisDriverOptions {
  readonly prefix: string
  readonly retentionMs: number
  readonly push: boolean
  /** null: a duplicate of the client. */
  readonly subscriber: ConnectionSource | null
  /** false: none; null: a duplicate of the client. */
  readonly retryConnection: false | ConnectionSource | null
}

const optionNames = ['prefix', 'retention', 'push', 'subscriber', 'retryConnection'] as const

function resolveRedisDriverOptions(options: RedisDriverOptions): ResolvedRedisDriverOptions {
  const {
    prefix = 'leasehold',
    retention = 60_000,
    push = true,
    subscriber,
    retryConnection = false,
  } = readOptions('redisDriver', options, optionNames)
  const isPrefix = typeof prefix === 'string' && /^[A-Za-z0-9_.:/-]{1,64}$/.test(prefix)
  requireOption(isPrefix, 'prefix', 'a text of 1 to 64 letters, digits or any of _ - . : /')
  const isRetention = Number.isInteger(retention) && retention >= 1000 && retention <= 86_400_000
  requireOption(isRetention, 'retention', 'whole milliseconds, 1,000 to 86,400,000')
  requireOption(typeof push === 'boolean', 'push', 'true or false')
  return {
    prefix,
    retentionMs: retention,
    push,
    subscriber: subscriber === undefined ? null : checkedSource('subscriber', subscriber),
    retryConnection:
      typeof retryConnection === 'boolean'
        ? retryConnection
          ? null
          : false
        : checkedSource('retryConnection', retryConnection),
  }
}

/** A client that cannot be used is refused here; what a function makes, when it has made it. */
function checkedSource(option: string, source: ConnectionSource): ConnectionSource {
  if (typeof source !== 'function') redisConnection(option, source)
  return source
}
