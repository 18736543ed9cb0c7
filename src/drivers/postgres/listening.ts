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

/** Opens a connection and resolves once the server has confirmed that it listens. */
export type Listen = (channel: string, hearing: Hearing) => Promise<Listening>

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

export function listenBy(create: ListenClientFactory): Listen {
  return async (channel, hearing) => {
    const client = await create({
      max: 1,
      fetch_types: false,
      onnotice: () => {},
      onnotify: (_channel, payload) => hearing.onPayload(payload),
      onclose: () => hearing.onGone(new Error('The listening connection was ended')),
    })
    const connection = 'unsafe' in client ? usePostgresJs(client) : usePg(client, hearing)
    try {
      await connection.run(`listen "${channel}"`)
    } catch (error) {
      await connection.close()
      throw error
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
      hearing.onGone(new Error('The listening connection was ended'))
      resolve()
    })
  })
  client.on('notification', ({ payload }) => hearing.onPayload(payload ?? ''))
  return {
    run: async (text) => {
      await client.connect()
      await client.query(text)
      // It waits for others to speak; that alone shall not keep the process alive.
      client.unref?.()
    },
    close: async () => {
      // Whoever awaits this must not find that the process has run out of things to wait for.
      client.ref?.()
      const stream = client.connection?.stream
      // On a connection that hangs, the server's half of the farewell would never come.
      stream?.once('finish', () => stream.destroy())
      await Promise.race([client.end().catch(() => {}), ended])
    },
  }
}
