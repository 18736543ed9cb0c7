/** What a listening connection tells. */
export interface Hearing {
  onPayload(payload: string): void
  /** The connection is gone. Can come more than once. */
  onGone(error: unknown): void
}

/** A connection that listens to one channel. */
export interface Listening {
  /** Ends the connection. Never rejects. */
  close(): Promise<void>
}

/** Opens a connection and resolves once the server has confirmed that it listens. The signal gives the attempt up. */
export type Listen = (channel: string, hearing: Hearing, signal: AbortSignal) => Promise<Listening>

/** A client of node-postgres that is not connected yet, or what works alike. */
export interface PgListenClient {
  connect(): Promise<unknown>
  query(text: string): Promise<unknown>
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  end(): Promise<void>
}

/** An instance of postgres.js that was made with the options that the factory was given. */
export interface PostgresJsListenClient {
  unsafe(text: string): PromiseLike<unknown>
  end(options: { timeout: number }): Promise<unknown>
}

/** What postgres.js needs to know to listen for us; to be handed to `postgres(url, options)`. */
export interface PostgresJsListenOptions {
  readonly max: number
  readonly fetch_types: boolean
  readonly onnotice: () => void
  readonly onnotify: (channel: string, payload: string) => void
  readonly onclose: () => void
}

type ListenClient = PgListenClient | PostgresJsListenClient

/** Makes a client that nobody else uses and that is ended with the subscription. */
export type ListenClientFactory = (options: PostgresJsListenOptions) => ListenClient | Promise<ListenClient>

const ending = 'The listening connection was ended'

export function listenBy(create: ListenClientFactory): Listen {
  return async (channel, hearing, signal) => {
    const client = await create({
      max: 1,
      fetch_types: false,
      onnotice: () => {},
      onnotify: (_channel, payload) => hearing.onPayload(payload),
      onclose: () => hearing.onGone(new Error(ending)),
    })
    signal.throwIfAborted()
    const connection = 'unsafe' in client ? usePostgresJs(client) : usePg(client, hearing)
    const giveUp = () => void connection.close()
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      await connection.run(`listen "${channel}"`)
    } catch (error) {
      await connection.close()
      throw error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
    return connection
  }
}

interface Connection extends Listening {
  run(text: string): Promise<void>
}

function usePostgresJs(sql: PostgresJsListenClient): Connection {
  return {
    run: async (text) => void (await sql.unsafe(text)),
    close: async () => void (await sql.end({ timeout: 0 }).catch(() => {})),
  }
}

/** What only node-postgres's own client has, and not its native one. */
interface PgInternals {
  ref?(): void
  unref?(): void
  readonly connection?: {
    readonly stream?: { destroy(): unknown; once(event: 'finish', listener: () => void): unknown }
  }
}

function usePg(client: PgListenClient & PgInternals, hearing: Hearing): Connection {
  // Before anything can fail: an 'error' event that nobody listens to ends the process.
  client.on('error', (error) => hearing.onGone(error))
  const ended = new Promise<void>((resolve) => {
    client.on('end', () => {
      hearing.onGone(new Error(ending))
      resolve()
    })
  })
  client.on('notification', ({ payload }) => hearing.onPayload(payload ?? ''))
  let isConnected = false
  return {
    run: async (text) => {
      // A client that is ended while it connects leaves that promise pending.
      await Promise.race([client.connect(), ended.then(() => Promise.reject(new Error(ending)))])
      isConnected = true
      await client.query(text)
      // It waits for others to speak; that alone shall not keep the process alive.
      client.unref?.()
    },
    close: async () => {
      // Whoever awaits this must not find that the process has run out of things to wait for.
      client.ref?.()
      const stream = client.connection?.stream
      // On a connection that hangs, the server's half of the farewell would never come.
      if (isConnected) stream?.once('finish', () => stream.destroy())
      else stream?.destroy()
      await Promise.race([client.end().catch(() => {}), ended])
    },
  }
}
