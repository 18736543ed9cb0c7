import { setTimeout as sleep } from 'node:timers/promises'
import type { LockService } from 'leasehold'
import { startPostgres } from '../../scripts/servers/postgres.mjs'
import { startRedis } from '../../scripts/servers/redis.mjs'
import type { Server } from '../../scripts/servers/server.mjs'
import { startSteppedClock, type SteppedClock } from '../../scripts/servers/stepped-clock.mjs'
import type { Stage, Strike, Upheaval, Way } from './upheaval.ts'

export interface SteppedServerOptions {
  readonly store: 'redis' | 'postgres'
  /** How far its clock is set forward, or back if it is negative. */
  readonly stepMs: number
}

/** A server whose clock is set wrong while it runs, and set right again a little later. */
export async function startSteppedServer(places: number, options: SteppedServerOptions): Promise<Upheaval> {
  const clock = await startSteppedClock()
  const { environment } = clock
  const server =
    options.store === 'redis'
      ? await startRedis({ environment, config: { appendonly: 'yes', appendfsync: 'always' } })
      : await startPostgres({ environment, config: { max_connections: '150' } })
  const libraries =
    options.store === 'redis' ? (['ioredis', 'node-redis'] as const) : (['pg', 'postgres.js'] as const)
  const ways = Array.from({ length: places }, (_, index): Way => ({
    client: libraries[index % 2] ?? libraries[0],
    by: index % 4 < 2 ? 'connect' : 'application',
    url: server.url,
  }))
  return new SteppedServer(server, clock, ways, options.stepMs)
}

class SteppedServer implements Upheaval {
  readonly ways: readonly Way[]
  readonly #server: Server
  readonly #clock: SteppedClock
  readonly #stepMs: number

  constructor(server: Server, clock: SteppedClock, ways: readonly Way[], stepMs: number) {
    this.#server = server
    this.#clock = clock
    this.ways = ways
    this.#stepMs = stepMs
  }

  get operatorUrl(): string {
    return this.#server.url
  }

  async strike({ random, except, wait }: Stage): Promise<Strike> {
    this.#step(this.#stepMs, except)
    await wait(1_000 + random.integer(3_000))
    this.#step(0, except)
    return { withheldMs: 0, lostBytes: 0, switchedAfterMs: 0, splitMs: 0, steppedMs: this.#stepMs }
  }

  /**
   * What was held while the clock was ahead, or before it was set back, ends that much later. Those who live give it back
   * when they are asked; then the operator frees what the dead have left, as `docs/failover.md` advises.
   */
  async repair(operator: LockService, ttlMs: number): Promise<void> {
    const late = async () => (await operator.list()).filter(({ remainingMs }) => remainingMs > 3 * ttlMs)
    const asked = await late()
    for (const { key, fence } of asked) await operator.forceRelease(key, { fence })
    if (asked.length === 0) return
    await sleep(2 * ttlMs)
    for (const { key, fence } of await late()) await operator.forceRelease(key, { fence, immediate: true })
  }

  async close(): Promise<void> {
    await this.#server.close()
    this.#clock.close()
  }

  /** Nobody can tell which of two things at the same moment was first. */
  #step(ms: number, except: () => void): void {
    except()
    this.#clock.set(ms)
    except()
  }
}
