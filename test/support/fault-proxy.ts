import { createServer, connect, type Server, type Socket } from 'node:net'
import { once } from 'node:events'
import { freePort } from '../../scripts/servers/free-port.mjs'

/**
 * How the proxy treats what passes through it.
 *
 * - `'pass'`: as if it were not there. What a blackhole held back arrives now, late, as TCP would deliver it.
 * - `{ latencyMs }`: every piece is that much later, in each direction.
 * - `'blackhole'`: connections are accepted and stay open, nothing arrives, nothing is reset.
 * - `'drop-answers'`: requests arrive and are carried out, their answers are lost. A connection that lost an
 *   answer stays deaf, whatever the mode later; new connections are not.
 * - `'drop-requests'`: the same for requests: they never arrive, while answers under way still do.
 * - `'hold-answers'`: requests arrive and are carried out, their answers wait until the mode is another.
 * - `'cut-answers'`: of the next piece of an answer the first half arrives, then the connection is gone.
 * - `'cut-requests'`: the same for requests.
 * - `'refuse'`: open connections are reset and new ones refused.
 */
export type FaultMode =
  | 'pass'
  | 'blackhole'
  | 'drop-answers'
  | 'drop-requests'
  | 'hold-answers'
  | 'cut-answers'
  | 'cut-requests'
  | 'refuse'
  | { readonly latencyMs: number }

export interface FaultProxy {
  readonly port: number
  /** The upstream's URL with the proxy's address in it. */
  readonly url: string
  readonly mode: FaultMode
  /** Connections open at this moment. */
  readonly connections: number
  /** Resolves when the mode is in force: what is sent afterwards is treated by it. */
  set(mode: FaultMode): Promise<void>
  /** Leads to another server from now on, as an address that moves to another host does; what is open is reset. */
  redirect(upstreamUrl: string): void
  /** Resets every open connection; the mode stays. */
  resetAll(): void
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a TCP proxy on a free loopback port in front of the host and port of `upstreamUrl`. */
export async function startFaultProxy(upstreamUrl: string): Promise<FaultProxy> {
  let upstream = new URL(upstreamUrl)
  const links = new Set<Link>()
  let mode: FaultMode = 'pass'

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ host: upstream.hostname, port: Number(upstream.port), allowHalfOpen: true })
    const link = new Link(client, target, mode, () => links.delete(link))
    links.add(link)
  })
  const port = await freePort()
  await listen(server, port)

  const ownUrl = new URL(upstreamUrl)
  ownUrl.host = `127.0.0.1:${port}`

  const resetAll = () => {
    for (const link of links) link.reset()
  }
  const close = async () => {
    const closed = server.listening ? once(server, 'close') : undefined
    server.close()
    resetAll()
    await closed
  }
  return {
    port,
    url: ownUrl.href,
    get mode() {
      return mode
    },
    get connections() {
      return links.size
    },
    set: async (next) => {
      mode = next
      if (next === 'refuse') return close()
      for (const link of links) link.apply(next)
      if (!server.listening) await listen(server, port)
    },
    redirect: (url) => {
      upstream = new URL(url)
      resetAll()
    },
    resetAll,
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

/** One client's connection and its counterpart at the upstream. */
class Link {
  readonly #sockets: readonly [client: Socket, target: Socket]
  readonly #requests: Pump
  readonly #answers: Pump

  constructor(client: Socket, target: Socket, mode: FaultMode, onClose: () => void) {
    this.#sockets = [client, target]
    this.#requests = new Pump(client, target, () => this.reset())
    this.#answers = new Pump(target, client, () => this.reset())
    this.apply(mode)
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      socket.setNoDelay(true)
      socket.on('error', () => cut(other))
      socket.on('close', () => {
        if (client.destroyed && target.destroyed) onClose()
      })
    }
  }

  apply(mode: FaultMode): void {
    this.#requests.apply(requestsUnder(mode))
    this.#answers.apply(answersUnder(mode))
  }

  reset(): void {
    for (const socket of this.#sockets) cut(socket)
  }
}

/** A socket that is just being ended cannot be reset: Node.js then leaves it open for ever. */
function cut(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

/** What happens to one direction. */
type PumpMode = 'pass' | 'hold' | 'drop' | 'cut' | { readonly latencyMs: number }

function requestsUnder(mode: FaultMode): PumpMode {
  if (typeof mode === 'object') return mode
  if (mode === 'drop-requests') return 'drop'
  if (mode === 'cut-requests') return 'cut'
  return mode === 'blackhole' ? 'hold' : 'pass'
}

function answersUnder(mode: FaultMode): PumpMode {
  if (typeof mode === 'object') return mode
  if (mode === 'drop-answers') return 'drop'
  if (mode === 'cut-answers') return 'cut'
  return mode === 'blackhole' || mode === 'hold-answers' ? 'hold' : 'pass'
}

/** One direction of a link: pieces leave in the order they came, when the mode lets them. */
class Pump {
  readonly #to: Socket
  readonly #resetBoth: () => void
  readonly #held: (Buffer | 'end')[] = []
  #mode: PumpMode = 'pass'
  #isDeaf = false
  #inFlight = 0
  #previous: Promise<unknown> = Promise.resolve()

  constructor(from: Socket, to: Socket, resetBoth: () => void) {
    this.#to = to
    this.#resetBoth = resetBoth
    from.on('data', (piece: Buffer) => this.#take(piece))
    from.on('end', () => this.#take('end'))
  }

  apply(mode: PumpMode): void {
    this.#mode = mode
    if (mode !== 'hold') for (const piece of this.#held.splice(0)) this.#take(piece)
  }

  #take(piece: Buffer | 'end'): void {
    this.#isDeaf ||= this.#mode === 'drop'
    if (this.#isDeaf) return
    if (this.#mode === 'hold') return void this.#held.push(piece)
    if (this.#mode === 'cut' && piece !== 'end') return this.#cut(piece)
    const latencyMs = typeof this.#mode === 'object' ? this.#mode.latencyMs : 0
    // Behind a piece that still waits, so that a shorter latency does not overtake a longer one.
    if (latencyMs === 0 && this.#inFlight === 0) return this.#deliver(piece)
    this.#later(piece, latencyMs)
  }

  #later(piece: Buffer | 'end', latencyMs: number): void {
    this.#inFlight++
    const waited = new Promise<void>((resolve) => setTimeout(resolve, latencyMs))
    this.#previous = Promise.all([waited, this.#previous]).then(() => {
      this.#inFlight--
      // A blackhole or a loss that began meanwhile applies to what is still under way.
      if (this.#mode === 'hold' || this.#mode === 'drop' || this.#mode === 'cut') this.#take(piece)
      else this.#deliver(piece)
    })
  }

  /** Nothing comes after the half. The reset waits until that is with the kernel, or it would overtake it. */
  #cut(piece: Buffer): void {
    this.#isDeaf = true
    if (!this.#to.writable) return this.#resetBoth()
    this.#to.write(piece.subarray(0, Math.floor(piece.length / 2)), () => this.#resetBoth())
  }

  #deliver(piece: Buffer | 'end'): void {
    if (!this.#to.writable) return
    if (piece === 'end') this.#to.end()
    else this.#to.write(piece)
  }
}
