import type { Lease, LockServiceOptions } from 'leasehold'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { afterEach, beforeEach, expect } from 'vitest'
import { LockService } from '../../src/core/lock-service.ts'
import type { AcquireOptions } from '../../src/core/options.ts'
import { rest, VirtualTime, type WorkerClock } from './virtual-time.ts'
import { watchedDriver, type WatchedDriver, type WatchedDriverOptions } from './watched-driver.ts'

/** One simulated process: its clocks and its service. */
export interface Worker {
  readonly clock: WorkerClock
  readonly locks: LockService
  /** Takes a key that is free; fails the test if it is not. */
  hold(key: string, options?: AcquireOptions): Promise<Lease>
}

export interface WorkerOptions extends Omit<LockServiceOptions, 'driver' | 'clock' | 'random'> {
  /** How far its wall clock is off. */
  readonly wallOffsetMs?: number
  readonly driver?: WatchedDriver
}

/** The class whose services are tried: the real one, or one with a planted bug. */
export type ServiceClass = new (options: LockServiceOptions) => LockService

/** Processes that share one store, in virtual time. */
export class World {
  readonly time: VirtualTime = new VirtualTime()
  readonly driver: WatchedDriver
  readonly #Service: ServiceClass
  readonly #workers: Worker[] = []
  readonly #unhandled: unknown[] = []
  readonly #onUnhandled = (reason: unknown): void => {
    this.#unhandled.push(reason)
  }

  constructor(options: WatchedDriverOptions = {}, Service: ServiceClass = LockService) {
    this.driver = watchedDriver({ now: this.time.storeNow, ...options })
    this.#Service = Service
    process.on('unhandledRejection', this.#onUnhandled)
  }

  /** One more process. */
  worker(options: WorkerOptions = {}): Worker {
    const { wallOffsetMs, driver = this.driver, ...rest_ } = options
    const clock = this.time.worker(wallOffsetMs)
    const random = seededRandom(this.#workers.length + 1).next
    const locks = new this.#Service({ ...rest_, driver, clock, random })
    const worker: Worker = {
      clock,
      locks,
      hold: async (key, acquireOptions) => {
        const lease = await this.time.until(locks.acquire(key, acquireOptions))
        if (lease === null) throw new Error(`${key} is held by somebody else.`)
        return lease
      },
    }
    this.#workers.push(worker)
    return worker
  }

  /** Lets time pass until a promise settles. */
  until<Value>(promise: Promise<Value>, withinMs?: number): Promise<Value> {
    return this.time.until(promise, withinMs)
  }

  /** Closes every service. Fails if anything of ours is left, or a rejection went unhandled. */
  async end(): Promise<void> {
    this.driver.heal()
    try {
      await this.until(Promise.all(this.#workers.map(({ locks }) => locks.close())))
      await rest()
      for (const { clock } of this.#workers)
        expect(this.time.timers(clock), 'timers left after close').toEqual([])
    } finally {
      process.off('unhandledRejection', this.#onUnhandled)
    }
    expect(this.#unhandled, 'unhandled rejections').toEqual([])
  }
}

/** A world for each test of a file, ended after it. */
export function eachWorld(options: WatchedDriverOptions = {}): () => World {
  let world: World | undefined
  beforeEach(() => {
    world = new World(options)
  })
  afterEach(async () => {
    await world?.end()
  })
  return () => {
    if (world === undefined) throw new Error('There is no world outside of a test.')
    return world
  }
}

/** What a promise has come to without time passing: `'pending'`, its value, or an object that tells its error. */
export async function soFar<Value>(promise: Promise<Value>): Promise<Value | 'pending' | { error: unknown }> {
  let state: Value | 'pending' | { error: unknown } = 'pending'
  promise.then(
    (value) => (state = value),
    (error: unknown) => (state = { error }),
  )
  await rest()
  return state
}
