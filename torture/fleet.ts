import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SeededRandom } from 'leasehold/testing'
import type { ClientName } from '../test/programs/open-locks.ts'
import type { FaultProxy } from '../test/support/fault-proxy.ts'
import type { Journal } from './history/journal.ts'
import { now } from './history/records.ts'
import type { FencedResource } from './resource.ts'
import type { ClockError, WorkerMessage, WorkerOrder, WorkerOrders } from './worker/messages.ts'

export interface FleetOptions {
  readonly folder: string
  readonly random: SeededRandom
  readonly journal: Journal
  readonly resource: FencedResource
  readonly clients: readonly (readonly [ClientName, 'application' | 'connect'])[]
  /** What every worker is told alike. */
  readonly orders: Pick<
    WorkerOrders,
    'namespace' | 'ttlMs' | 'requestTimeoutMs' | 'hotKeys' | 'coldKeys' | 'plant'
  >
  readonly clocksAreWrong: boolean
  /** All processes say that they are the same one on the same host. */
  readonly disguised?: boolean
  /** How many connections an application's pool may have; one of these is drawn for each process. Default 10. */
  readonly connections?: readonly number[]
  /** The way to the store of each place; a proxy where there is a server. */
  readonly links: readonly { readonly url: string; readonly proxy: FaultProxy | null }[]
}

/** Where one worker at a time runs; a new one when the last was killed. */
export interface Place {
  readonly index: number
  readonly proxy: FaultProxy | null
  /** What its workers reach the store with, and whose that is. */
  readonly client: ClientName
  readonly by: 'application' | 'connect'
  /** Of the edited task's schedule, which its next worker runs. */
  edition: number
  worker: Worker
  incarnation: number
  /** A fault is at work here. */
  busy: boolean
}

export class Worker {
  readonly name: string
  readonly ended: Promise<void>
  /** It has begun to work. */
  readonly ready: Promise<void>
  readonly #child: ChildProcess
  #cause: 'killed' | 'asked' | 'nobody' = 'nobody'
  #closedAt = Infinity
  readonly #awaited = new Map<number, () => void>()

  constructor(child: ChildProcess, name: string, { journal, resource }: FleetOptions) {
    this.#child = child
    this.name = name
    child.on('error', () => {})
    let isReady = (): void => {}
    this.ready = new Promise((resolve) => (isReady = resolve))
    child.on('message', (message: WorkerMessage) => {
      if (message.tell === 'ready') isReady()
      if (message.tell === 'closed') this.#closedAt = now()
      if (message.tell === 'done') this.#awaited.get(message.id)?.()
      if (message.tell !== 'resource') return
      this.tell({ do: 'answer', id: message.id, ...resource.serve(message) })
    })
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        const tookMs = Math.max(0, now() - this.#closedAt)
        journal.write({ is: 'ended', worker: name, how: String(code ?? signal), cause: this.#cause, tookMs })
        resolve()
      })
    })
  }

  tell(order: WorkerOrder): void {
    if (this.#child.connected) this.#child.send(order, () => {})
  }

  /** Resolves when it has done that, or ended. */
  async done(order: Extract<WorkerOrder, { do: 'crowd' | 'hoard' }>): Promise<void> {
    const done = new Promise<void>((resolve) => this.#awaited.set(order.id, resolve))
    this.tell(order)
    await Promise.race([done, this.ended])
    this.#awaited.delete(order.id)
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name)
  }

  /** It will kill itself, or is killed now. */
  async kill(point?: Extract<WorkerOrder, { do: 'die' }>, withinMs = 0): Promise<void> {
    this.#cause = 'killed'
    if (point !== undefined) {
      this.tell(point)
      await Promise.race([this.ended, new Promise((resolve) => setTimeout(resolve, withinMs))])
    }
    this.#child.kill('SIGKILL')
    await this.ended
  }

  /** Asks it to end by itself; one that does not is killed, which the checker of leaks finds. */
  async leave(how: 'SIGTERM' | 'order'): Promise<void> {
    if (this.#cause === 'nobody') this.#cause = 'asked'
    if (how === 'SIGTERM') this.#child.kill('SIGTERM')
    else this.tell({ do: 'leave' })
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 40_000)
    await this.ended
    clearTimeout(late)
  }
}

/** Starts the workers, and sees to it that none outlives this process. */
export class Fleet {
  readonly places: readonly Place[]
  readonly #options: FleetOptions

  constructor(options: FleetOptions) {
    this.#options = options
    this.places = options.links.map(({ proxy }, index) => {
      const [client, by] = options.clients[index % options.clients.length] as (typeof options.clients)[number]
      const place = { index, proxy, client, by, edition: 1, incarnation: 1, busy: false }
      return { ...place, worker: this.#start(place) }
    })
    process.once('exit', () => {
      for (const { worker } of this.places) void worker.kill()
    })
  }

  replace(place: Place): void {
    place.incarnation++
    place.worker = this.#start(place)
  }

  /** Resolves when all have begun to work: on a busy machine that takes as long as some faults last. */
  async ready(): Promise<void> {
    await Promise.all(this.places.map(({ worker }) => Promise.race([worker.ready, worker.ended])))
  }

  async leave(): Promise<void> {
    await Promise.all(this.places.map(({ worker }) => worker.leave('order')))
  }

  #start({ index, incarnation, edition, client, by }: Omit<Place, 'worker'>): Worker {
    const { folder, random, orders, links, connections = [10], disguised = false } = this.#options
    const name = `w${index}-${incarnation}`
    const own: WorkerOrders = {
      ...orders,
      name,
      place: index,
      seed: random.integer(2 ** 31),
      journal: join(folder, `${name}.jsonl`),
      address: { client, by, url: links[index]?.url ?? '', connections: random.pick(connections) },
      clock: this.#clockError(),
      edition,
      disguised,
    }
    const program = fileURLToPath(new URL('./worker/main.js', import.meta.url))
    const child = fork(program, [JSON.stringify(own)], { stdio: ['ignore', 2, 2, 'ipc'] })
    return new Worker(child, name, this.#options)
  }

  #clockError(): ClockError {
    const { random, clocksAreWrong } = this.#options
    if (!clocksAreWrong) return { monotonicRate: 1, wallRate: 1, wallOffsetMs: 0, isWrong: false }
    const sign = random.pick([1, -1])
    return {
      isWrong: true,
      monotonicRate: random.pick([1, 0.997, 1.003]),
      wallRate: random.pick([1, 0.8, 1.2]),
      wallOffsetMs: sign * random.pick([0, 1_000, 60_000, 3_600_000]),
    }
  }
}
