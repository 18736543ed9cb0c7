import { createHash, randomBytes } from 'node:crypto'
import type { Notice, NoticeChannel, NoticeListener } from '../../driver/driver.ts'
import type { Listen, Listening } from './listening.ts'
import type { TableNames } from './schema.sql.ts'
import { statement } from './store.ts'
import type { PostgresStore, Scope } from './store.ts'

/*
 * Notices travel as NOTIFY, one letter and its argument: `r` and the key that was released, `c` and the control
 * version, `p` and the name of a probe.
 */

/** The channel of a namespace. Channels are shared by the whole database and have at most 63 bytes. */
export function channelName({ namespaces }: TableNames, namespace: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([namespaces, namespace]))
    .digest('hex')
  return `leasehold_${hash.slice(0, 24)}`
}

/** The push channels of one session. */
export class Notices {
  readonly #store: PostgresStore
  readonly #listen: Listen
  readonly #channel: string
  readonly #open = new Set<OpenChannel>()
  readonly #closing = new AbortController()

  constructor(store: PostgresStore, listen: Listen, { channel }: Scope) {
    this.#store = store
    this.#listen = listen
    this.#channel = channel
  }

  async open(listener: NoticeListener): Promise<NoticeChannel> {
    const channel = new OpenChannel(listener, (name) => this.#sendProbe(name))
    await channel.listenBy(this.#listen, this.#channel, this.#closing.signal)
    this.#open.add(channel)
    return {
      probe: () => channel.probe(),
      close: async () => {
        this.#open.delete(channel)
        await channel.close()
      },
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('The session was closed'))
    const open = [...this.#open]
    this.#open.clear()
    await Promise.all(open.map((channel) => channel.close()))
  }

  /**
   * Through the ordinary client: a transaction pooler would deliver what the listening connection sends to itself, and
   * nothing that comes while it is idle.
   */
  #sendProbe(name: string): Promise<unknown> {
    return this.#store.ask(notify, [this.#channel, `p${name}`], 1)
  }
}

const notify = statement(`select 'true' as answer from pg_notify($1, $2)`)

class OpenChannel {
  readonly #listener: NoticeListener
  readonly #sendProbe: (name: string) => Promise<unknown>
  readonly #probes = new Map<string, PromiseWithResolvers>()
  #listening: Listening | undefined
  /** Why it hears nothing any more. */
  #ended: { readonly error: unknown } | undefined

  constructor(listener: NoticeListener, sendProbe: (name: string) => Promise<unknown>) {
    this.#listener = listener
    this.#sendProbe = sendProbe
  }

  async listenBy(listen: Listen, channel: string, signal: AbortSignal): Promise<void> {
    const hearing = {
      onPayload: (payload: string) => this.#hear(payload),
      onGone: (error: unknown) => this.#goDeaf(error),
    }
    const listening = await listen(channel, hearing, signal)
    if (this.#ended === undefined && !signal.aborted) {
      this.#listening = listening
      return
    }
    await listening.close()
    throw this.#ended?.error ?? signal.reason
  }

  async probe(): Promise<void> {
    if (this.#ended !== undefined) throw this.#ended.error
    const name = randomBytes(9).toString('base64url')
    const heard = withResolvers()
    this.#probes.set(name, heard)
    try {
      await Promise.all([this.#sendProbe(name), heard.promise])
    } finally {
      this.#probes.delete(name)
    }
  }

  async close(): Promise<void> {
    this.#end(new Error('The push channel was closed'))
    await this.#listening?.close()
  }

  #hear(payload: string): void {
    if (this.#ended !== undefined) return
    const [kind, argument] = [payload.slice(0, 1), payload.slice(1)]
    if (kind === 'p') return this.#probes.get(argument)?.resolve()
    const notice = noticeOf(kind, argument)
    if (notice !== undefined) this.#listener.onNotice(notice)
  }

  #goDeaf(error: unknown): void {
    if (this.#ended !== undefined) return
    this.#end(error)
    // Before that, opening it fails, which says the same.
    if (this.#listening !== undefined) this.#listener.onDeaf(error)
  }

  #end(error: unknown): void {
    this.#ended ??= { error }
    for (const { reject } of this.#probes.values()) reject(error)
    this.#probes.clear()
  }
}

function noticeOf(kind: string, argument: string): Notice | undefined {
  if (kind === 'r') return { kind: 'released', key: argument }
  if (kind === 'c') return { kind: 'control', version: Number(argument) }
  return undefined
}

interface PromiseWithResolvers {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** `Promise.withResolvers`, which Node 20 has not. */
function withResolvers(): PromiseWithResolvers {
  let settle: Omit<PromiseWithResolvers, 'promise'> | undefined
  const promise = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle! }
}
