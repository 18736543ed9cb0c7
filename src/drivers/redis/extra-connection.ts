import { redisConnection, type RedisClient, type RedisConnection } from './clients.ts'

/** Where a connection besides the user's client comes from: a client that stays the user's, or one made when needed. */
export type ConnectionSource = RedisClient | (() => RedisClient | Promise<RedisClient>)

export interface ExtraConnection {
  readonly connection: RedisConnection
  /** It is the driver's own, to open and to close. */
  readonly isOwn: boolean
}

/** @param source null for a duplicate of the user's client */
export async function makeConnection(
  option: string,
  source: ConnectionSource | null,
  main: RedisConnection,
): Promise<ExtraConnection> {
  if (source === null) return { connection: main.duplicate(), isOwn: true }
  if (typeof source !== 'function') return { connection: redisConnection(option, source), isOwn: false }
  return { connection: redisConnection(option, await source()), isOwn: true }
}

/**
 * The connection for calls that are made again because the first one hung. Opened by the first of them; if it cannot
 * be opened or has ended, the user's client serves, and the next call tries again.
 */
export class RetryConnection {
  readonly #make: () => Promise<ExtraConnection>
  readonly #main: RedisConnection
  #opened: Promise<ExtraConnection> | undefined
  /** The connection to close, from the moment it is made. */
  #own: RedisConnection | undefined
  #isClosed = false

  constructor(make: () => Promise<ExtraConnection>, main: RedisConnection) {
    this.#make = make
    this.#main = main
  }

  async get(): Promise<RedisConnection> {
    if (this.#isClosed) return this.#main
    this.#opened ??= this.#open()
    const opened = this.#opened
    try {
      const { connection } = await opened
      if (connection.obstacle() === null) return connection
    } catch {
      // Whatever is wrong with the store, the user's client meets it too, and says so.
    }
    if (this.#opened === opened) this.#opened = undefined
    return this.#main
  }

  /** Does not wait for a connection that is still being opened: on a server that hangs it never is. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#opened = undefined
    await this.#own?.close()
  }

  async #open(): Promise<ExtraConnection> {
    const extra = await this.#make()
    if (!extra.isOwn) return extra
    const { connection } = extra
    this.#own = connection
    try {
      if (this.#isClosed) throw new Error('The session was closed while its connection was made.')
      await connection.open()
    } catch (error) {
      await connection.close()
      throw error
    }
    return extra
  }
}
