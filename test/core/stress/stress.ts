import type { Lease } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { LockService } from '../../../src/core/lock-service.ts'
import { seededRandom, type SeededRandom } from '../../../src/testing/seeded-random.ts'
import { rest, VirtualTime, type WorkerClock } from '../virtual-time.ts'
import type { ServiceClass } from '../world.ts'
import { Link } from './link.ts'

const keys = ['a', 'b', 'c'] as const
const ttls = [200, 350, 600, 1_200, 2_500] as const
const requestTimeoutMs = 400
/** The longest that the link delays anything, there or back. */
const longestDelayMs = 3_000

interface Node {
  readonly name: string
  readonly clock: WorkerClock
  readonly link: Link
  readonly locks: LockService
  /** Its machine is suspended at times; otherwise its wall clock is stepped at times. Not both: no clock would tell. */
  readonly isPortable: boolean
  frozenSince: number | null
  resumedAt: number
}

/** A lease that was returned to somebody. */
interface Belief {
  readonly node: Node
  readonly lease: Lease
  isReleased: boolean
  /** Its abort event has been heard. */
  isTold: boolean
}

export interface StressOptions {
  readonly operations?: number
  /** The class under trial. */
  readonly Service?: ServiceClass
}

/**
 * Random operations of several processes on one store over bad links, drawn from a seed. Rejects with the seed and the
 * last steps if a promise was broken; resolves with all that happened, which is the same every time.
 */
export async function stress(seed: number, options: StressOptions = {}): Promise<readonly string[]> {
  const run = new Stress(seed, options.Service ?? LockService)
  try {
    await run.play(options.operations ?? 500)
    await run.end()
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    throw new Error(`Seed ${seed}: ${message}\nThe last steps:\n${run.trace.slice(-40).join('\n')}`, {
      cause: error,
    })
  } finally {
    run.leave()
  }
  return run.trace
}

class Stress {
  readonly trace: string[] = []
  readonly #time = new VirtualTime()
  readonly #random: SeededRandom
  readonly #nodes: Node[] = []
  readonly #beliefs = new Map<string, Belief[]>()
  /** The token that each key was granted to last in the store, and under which fence. */
  readonly #granted = new Map<string, { token: string; fence: number }>()
  /** How often the store told each node that a key is held, or granted it to a caller of that node. */
  readonly #takenAnswers = new Map<string, number>()
  readonly #work = new Set<Promise<void>>()
  readonly #broken: Error[] = []
  #isEnding = false
  readonly #unhandled: unknown[] = []
  readonly #onUnhandled = (reason: unknown): void => {
    this.#unhandled.push(reason)
  }

  constructor(seed: number, Service: ServiceClass) {
    this.#random = seededRandom(seed)
    const memory = memoryDriver({ store: `stress ${seed} ${Math.random()}`, now: this.#time.storeNow })
    const [push, maxBatch] = [this.#random.next() < 0.7, this.#random.pick([1, 2, 1_000])]
    const store = { ...memory, abilities: { ...memory.abilities, push, maxBatch } }
    for (let index = 0; index < 4; index++) {
      const name = `n${index}`
      const clock = this.#time.worker(this.#random.integer(20_000) - 10_000)
      const link = new Link(store, this.#time, clock, this.#random, {
        onGranted: (key, token, fence) => {
          this.#countTaken(name, key)
          this.#onGranted(name, key, token, fence)
        },
        onHeld: (key) => this.#countTaken(name, key),
      })
      const locks = new Service({
        driver: link.driver,
        clock,
        random: this.#random.next,
        requestTimeout: requestTimeoutMs,
        waitStep: 30,
      })
      this.#nodes.push({
        name,
        clock,
        link,
        locks,
        isPortable: index % 2 === 0,
        frozenSince: null,
        resumedAt: -Infinity,
      })
    }
    process.on('unhandledRejection', this.#onUnhandled)
  }

  async play(operations: number): Promise<void> {
    for (let step = 0; step < operations; step++) {
      const node = this.#random.pick(this.#nodes)
      await (node.frozenSince === null ? this.#operate(node) : this.#maybeResume(node))
      await this.#time.advance(this.#random.integer(60))
      this.#raise()
    }
  }

  /** The store and the links recover, half of the processes are dead, and everything must come to an end. */
  async end(): Promise<void> {
    for (const node of this.#nodes) if (node.frozenSince !== null) await this.#resume(node)
    const [dead, alive] = [this.#nodes.slice(0, 2), this.#nodes.slice(2)]
    for (const node of dead) {
      node.link.isCut = true
      node.clock.frozen = true
      this.#wasFrozen.add(node)
    }
    for (const { link } of alive) link.isHealed = true
    this.#isEnding = true
    for (const belief of [...this.#beliefs.values()].flat())
      if (alive.includes(belief.node) && !belief.isReleased) this.#release(belief)
    // G4: free one ttl after the last that the dead could do, which may be on its way for a while.
    const boundMs = longestDelayMs + Math.max(...ttls) + requestTimeoutMs * 2 + longestDelayMs
    const heir = this.#nodes[3] as Node
    for (const key of keys) {
      const lease = await this.#time.until(heir.locks.acquire(key, { wait: Infinity, ttl: 1_000 }), boundMs)
      this.#note(`${heir.name} inherits ${key}`)
      if (lease === null || !lease.isHeld()) throw new Error(`The heir of ${key} does not hold it.`)
      await this.#time.until(lease.release())
    }
    for (const { link, clock } of dead) {
      link.isCut = false
      link.isHealed = true
      clock.frozen = false
      link.thaw()
    }
    await this.#time.until(Promise.all(this.#work))
    await this.#time.until(Promise.all(this.#nodes.map(({ locks }) => locks.close())))
    await rest()
    this.#raise()
    for (const { name, clock } of this.#nodes) {
      const timers = this.#time.timers(clock)
      if (timers.length > 0) throw new Error(`${name} left timers: ${JSON.stringify(timers)}`)
    }
  }

  leave(): void {
    process.off('unhandledRejection', this.#onUnhandled)
  }

  // ---- what is done

  async #operate(node: Node): Promise<void> {
    const random = this.#random
    const key = random.pick(keys)
    const chance = random.next()
    if (chance < 0.34) return this.#acquire(node, key, 0, null)
    if (chance < 0.52)
      return this.#acquire(
        node,
        key,
        20 + random.integer(1_500),
        random.next() < 0.3 ? random.integer(800) : null,
      )
    if (chance < 0.8) return this.#releaseOne(node)
    if (chance < 0.86) return this.#extendOne(node)
    if (chance < 0.89) return this.#revoke(node, key)
    if (chance < 0.92) return this.#look(node, key)
    if (chance < 0.96) return this.#freeze(node)
    if (chance < 0.985) return this.#stepWall(node)
    node.link.downUntil = this.#time.now + random.integer(2_000)
    this.#note(`${node.name} is cut off until ${node.link.downUntil}`)
  }

  #acquire(node: Node, key: string, wait: number, abortAfterMs: number | null): void {
    const ttl = this.#random.pick(ttls)
    const heartbeat = this.#random.next() < 0.8
    const controller = new AbortController()
    if (abortAfterMs !== null) void this.#time.sleep(abortAfterMs).then(() => controller.abort('aborted'))
    const { name } = node
    this.#note(`${name} acquires ${key} for ${ttl}, waits ${wait}${heartbeat ? '' : ', no heartbeat'}`)
    const takenBefore = this.#takenAnswers.get(name + key) ?? 0
    this.#begin(
      node.locks.acquire(key, { ttl, wait, heartbeat, signal: controller.signal }).then(
        (lease) => {
          if (lease !== null) return this.#believe(node, lease)
          this.#note(`${name} is told that ${key} is held`)
          // G7: null is what the store said since the call, or another caller of this process got the key.
          const saidSo = (this.#takenAnswers.get(name + key) ?? 0) > takenBefore
          if (!saidSo) this.#break(`G7: ${name} was told that ${key} is held, and the store never said so.`)
        },
        (error: unknown) => {
          const code = error === 'aborted' ? 'ABORTED' : (error as { code?: string }).code
          this.#note(`${name} gets ${code} for ${key}`)
          if (code !== 'ABORTED' && code !== 'STORE_UNAVAILABLE' && code !== 'CLOSED')
            this.#break(`An acquire failed: ${String(error)}`)
        },
      ),
    )
  }

  #releaseOne(node: Node): void {
    const own = [...this.#beliefs.values()]
      .flat()
      .filter((belief) => belief.node === node && !belief.isReleased)
    if (own.length > 0) this.#release(this.#random.pick(own))
  }

  #release(belief: Belief): void {
    const { node, lease } = belief
    belief.isReleased = true
    const startedAt = node.clock.monotonic()
    this.#begin(
      lease.release().then(
        (outcome) => {
          this.#note(`${node.name} released ${lease.key}/${lease.fence}: ${outcome}`)
          const tookMs = node.clock.monotonic() - startedAt
          if (
            tookMs > requestTimeoutMs + 1 &&
            node.frozenSince === null &&
            !belief.node.link.isCut &&
            !this.#wasFrozen.has(node)
          )
            this.#break(`G8: a release took ${tookMs} ms.`)
        },
        (error: unknown) => this.#break(`G8: a release threw ${String(error)}.`),
      ),
    )
  }

  readonly #wasFrozen = new Set<Node>()

  #extendOne(node: Node): void {
    const own = [...this.#beliefs.values()]
      .flat()
      .filter((belief) => belief.node === node && !belief.isReleased)
    if (own.length === 0) return
    const { lease } = this.#random.pick(own)
    const duration = this.#random.pick(ttls)
    this.#begin(
      lease.extend(duration).then(
        () => this.#note(`${node.name} extended ${lease.key} by ${duration}`),
        (error: unknown) => {
          const { code } = error as { code?: string }
          if (code !== 'LEASE_LOST' && code !== 'STORE_UNAVAILABLE')
            this.#break(`An extension failed: ${String(error)}`)
        },
      ),
    )
  }

  #revoke(node: Node, key: string): void {
    this.#begin(
      node.locks.forceRelease(key).then(
        (outcome) => this.#note(`${node.name} forces ${key}: ${outcome}`),
        (error: unknown) => {
          const { code } = error as { code?: string }
          if (code !== 'STORE_UNAVAILABLE' && code !== 'STORE_UNUSABLE')
            this.#break(`A forced release failed: ${String(error)}`)
        },
      ),
    )
  }

  #look(node: Node, key: string): void {
    this.#begin(
      Promise.all([node.locks.peek(key), node.locks.list()]).then(
        () => {},
        () => {},
      ),
    )
  }

  #freeze(node: Node): void {
    this.#note(`${node.name} stands still`)
    node.frozenSince = this.#time.now
    node.clock.frozen = true
    this.#wasFrozen.add(node)
  }

  async #maybeResume(node: Node): Promise<void> {
    if (this.#random.next() < 0.3) await this.#resume(node)
  }

  async #resume(node: Node): Promise<void> {
    const frozenMs = this.#time.now - (node.frozenSince ?? 0)
    this.#note(`${node.name} goes on after ${frozenMs} ms${node.isPortable ? ' of suspend' : ''}`)
    node.frozenSince = null
    node.resumedAt = this.#time.now
    node.clock.frozen = false
    if (node.isPortable) node.clock.wasSuspended(frozenMs)
    // Either the timers that are overdue come first, or what has arrived meanwhile.
    if (this.#random.next() < 0.5) await this.#time.advance(0)
    node.link.thaw()
  }

  #stepWall(node: Node): void {
    if (node.isPortable) return this.#freeze(node)
    const byMs =
      (this.#random.next() < 0.5 ? -1 : 1) * this.#random.integer(this.#random.pick([20, 2_000, 100_000]))
    this.#note(`${node.name} has its wall clock set by ${byMs} ms`)
    node.clock.stepWall(byMs)
  }

  #begin(work: Promise<void>): void {
    const tracked = work.finally(() => this.#work.delete(tracked))
    this.#work.add(tracked)
  }

  // ---- what is checked

  #believe(node: Node, lease: Lease): void {
    const { key, fence } = lease
    this.#note(`${node.name} holds ${key}/${fence}`)
    const belief: Belief = { node, lease, isReleased: false, isTold: false }
    lease.signal.addEventListener('abort', () => {
      belief.isTold = true
      this.#note(`${node.name} lost ${key}/${fence}: ${lease.lossReason}`)
    })
    const others = this.#beliefs.get(key) ?? []
    for (const other of others) {
      // The grant of the other came later in the store, and this one returns only now: it must be over already.
      if (other.lease.fence > fence && lease.isHeld())
        this.#break(`G1: ${key}/${fence} is believed after ${other.lease.fence} was granted.`)
    }
    others.push(belief)
    this.#beliefs.set(key, others)
    if (this.#isEnding) this.#release(belief)
  }

  /** A key is granted in the store: whoever had it before has stopped believing, and knows. */
  #onGranted(name: string, key: string, token: string, fence: number): void {
    const before = this.#granted.get(key)
    // Asked again: the same grant. (After its expiry the same token may be granted anew, under another fence.)
    if (before?.token === token && before.fence === fence) return
    this.#note(`store grants ${key}/${fence} to ${name}`)
    if (before !== undefined && fence <= before.fence)
      this.#break(`G2: ${key} was granted with ${fence} after ${before.fence}.`)
    this.#granted.set(key, { token, fence })
    for (const { lease, node, isReleased, isTold } of this.#beliefs.get(key) ?? []) {
      if (isReleased) continue
      // G3: a process that runs has been told by now; after a suspend, which stops the timers, it takes a second.
      const isAwake =
        node.frozenSince === null && this.#time.now - node.resumedAt > (node.isPortable ? 1_000 : 0)
      if (isAwake && !node.link.isCut && !isTold)
        this.#break(`G3: ${node.name} was not told that it lost ${key}/${lease.fence}.`)
      if (lease.isHeld()) this.#break(`G1: ${node.name} believes to hold ${key}/${lease.fence}.`)
    }
  }

  #countTaken(name: string, key: string): void {
    this.#takenAnswers.set(name + key, (this.#takenAnswers.get(name + key) ?? 0) + 1)
  }

  #note(event: string): void {
    this.trace.push(`${this.#time.now} ${event}`)
  }

  #break(what: string): void {
    this.#note(`BROKEN ${what}`)
    this.#broken.push(new Error(what))
  }

  #raise(): void {
    const [broken] = this.#broken
    if (broken !== undefined) throw broken
    if (this.#unhandled.length > 0) throw new Error(`Unhandled: ${String(this.#unhandled[0])}`)
  }
}
