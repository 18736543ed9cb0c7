import type { AcquireOptions, Lease, RunResult } from 'leasehold'
import type { SeededRandom } from 'leasehold/testing'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Journal } from '../history/journal.ts'
import { now } from '../history/records.ts'
import type { WorkerOrders } from './messages.ts'
import type { ResourceClient } from './resource-client.ts'
import type { Witness } from './witness.ts'

/** What the workers use of a service; a planted bug may stand in between. */
export interface UsedLocks {
  acquire(key: string, options: AcquireOptions): Promise<Lease | null>
  runExclusive(
    key: string,
    work: (lease: Lease) => Promise<number>,
    options: AcquireOptions,
  ): Promise<RunResult<number>>
}

export interface LockWorkOptions {
  readonly locks: UsedLocks
  readonly orders: WorkerOrders
  readonly random: SeededRandom
  readonly journal: Journal
  readonly witness: Witness
  readonly resource: ResourceClient
}

/** Takes, uses and gives back leases in every way there is, until told to stop. */
export class LockWork {
  readonly #options: LockWorkOptions
  readonly #stop = new AbortController()
  #asks = 0
  #misbehavesUntil = 0

  constructor(options: LockWorkOptions) {
    this.#options = options
  }

  /** Resolves when it has stopped. */
  async run(): Promise<void> {
    const { orders } = this.#options
    await Promise.all([
      this.#repeat(() => this.#useHotKey()),
      this.#repeat(() => this.#useHotKey()),
      this.#repeat(() => this.#runExclusive()),
      this.#repeat(() => this.#passThrough(this.#options.random.pick(orders.coldKeys))),
    ])
  }

  /** For so long callbacks throw, go on after a loss, or never return. */
  misbehave(ms: number): void {
    this.#misbehavesUntil = now() + ms
  }

  stop(): void {
    this.#stop.abort(new Error('The worker ends.'))
  }

  async #repeat(body: () => Promise<void>): Promise<void> {
    const { random } = this.#options
    while (!this.#stop.signal.aborted) {
      await body()
      await sleep(random.integer(40))
    }
  }

  async #useHotKey(): Promise<void> {
    const { random, orders } = this.#options
    const wait = random.pick([0, 0, 300, 2_500, Infinity])
    const heartbeat = random.integer(6) > 0
    const lease = await this.acquire(random.pick(orders.hotKeys), { wait, heartbeat })
    if (lease === null) return
    const ignoresLoss = random.integer(4) === 0
    await this.#increment(lease, ignoresLoss ? random.integer(600) : this.#workMs(), ignoresLoss)
    if (random.integer(8) === 0) await this.#extend(lease)
    // Some are careless: what they don't give back has to lapse.
    if (!heartbeat && random.integer(3) === 0) return
    await this.release(lease)
  }

  /** Nothing but a lease and its release: many of them. */
  async #passThrough(key: string): Promise<void> {
    const { random } = this.#options
    const lease = await this.acquire(key, { wait: random.pick([0, 100]) })
    if (lease !== null) await this.release(lease)
  }

  async #runExclusive(): Promise<void> {
    const { locks, random, orders, journal, witness } = this.#options
    const key = random.pick(orders.hotKeys)
    const of = `lock:${key}`
    const end = random.integer(now() < this.#misbehavesUntil ? 4 : 20)
    const wait = random.pick([0, 500])
    const ask = this.#ask(of, wait)
    const options = { wait, signal: this.#stop.signal, maxLifetime: 3 * orders.ttlMs }
    const value = random.integer(1_000_000)
    const wanted = end < 4 ? `it threw ${value}` : `it returned ${value}`
    let fence: number | undefined
    const work = async (lease: Lease): Promise<number> => {
      fence = lease.fence
      witness.granted(of, lease, ask)
      this.#settled(of, ask, 'granted')
      await this.#increment(lease, this.#workMs(), true)
      // A callback that never returns keeps its lease until the maximum lifetime, or the close.
      if (end === 0) await new Promise(() => {})
      journal.write({ is: 'let-go', of, fence: lease.fence })
      if (end < 4) throw new Error(`it threw ${value}`)
      return value
    }
    const settled = locks.runExclusive(key, work, options).then(
      (ran) => {
        if (!ran.acquired) return this.#settled(of, ask, 'held')
        journal.write({ is: 'returned', of, fence: fence ?? 0, wanted, got: `it returned ${ran.result}` })
      },
      (error: unknown) => {
        if (fence === undefined) return this.#settled(of, ask, codeOf(error))
        journal.write({ is: 'returned', of, fence, wanted, got: (error as Error).message })
      },
    )
    await (end === 0 ? sleep(200) : settled)
  }

  /** As the library's, written down. Null also where it failed. */
  async acquire(key: string, options: AcquireOptions & { readonly wait: number }): Promise<Lease | null> {
    const { locks, witness } = this.#options
    const of = `lock:${key}`
    const ask = this.#ask(of, options.wait)
    try {
      const lease = await locks.acquire(key, { ...options, signal: this.#stop.signal })
      if (lease !== null) witness.granted(of, lease, ask)
      this.#settled(of, ask, lease === null ? 'held' : 'granted')
      return lease
    } catch (error) {
      this.#settled(of, ask, codeOf(error))
      return null
    }
  }

  #ask(of: string, waitMs: number): number {
    const ask = ++this.#asks
    this.#options.journal.write({ is: 'asked', of, ask, waitMs: Number.isFinite(waitMs) ? waitMs : null })
    return ask
  }

  #settled(of: string, ask: number, outcome: string): void {
    this.#options.journal.write({ is: 'settled', of, ask, outcome })
  }

  async release(lease: Lease): Promise<void> {
    const { journal } = this.#options
    const name = { of: `lock:${lease.key}`, fence: lease.fence }
    const before = now()
    journal.write({ is: 'let-go', ...name }, before)
    const outcome = await lease.release()
    journal.write({ is: 'given-back', ...name, outcome, tookMs: now() - before })
  }

  async #extend(lease: Lease): Promise<void> {
    const { orders, witness } = this.#options
    try {
      await lease.extend(orders.ttlMs * 1.5)
    } catch {
      return
    }
    witness.looked(`lock:${lease.key}`, lease)
  }

  /** Reads, works, and writes what it read plus one: two who do that at once lose a write, unless fences help. */
  async #increment(lease: Lease, workMs: number, ignoresLoss: boolean): Promise<void> {
    const { resource, witness } = this.#options
    const of = `lock:${lease.key}`
    const value = await resource.read(of, lease.fence)
    const pieces = 1 + Math.floor(workMs / 200)
    for (let piece = 0; piece < pieces; piece++) {
      await sleep(workMs / pieces)
      // Or a process whose ttl is long would outlive its work, and look as if something had leaked.
      if (this.#stop.signal.aborted) return
      witness.looked(of, lease)
      if (!ignoresLoss && (!lease.isHeld() || lease.signal.aborted)) return
    }
    if (value !== null) await resource.write(of, lease.fence, value + 1)
  }

  #workMs(): number {
    const { random, orders } = this.#options
    return random.integer(8) === 0 ? random.integer(2.5 * orders.ttlMs) : random.integer(60)
  }
}

function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message)
}
