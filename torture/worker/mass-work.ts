import type { Lease } from 'leasehold'
import type { Journal } from '../history/journal.ts'
import { now } from '../history/records.ts'
import type { LockWork, UsedLocks } from './lock-work.ts'
import type { WorkerOrder } from './messages.ts'
import { tell } from './resource-client.ts'

export interface MassWorkOptions {
  readonly locks: UsedLocks
  readonly journal: Journal
  readonly lockWork: LockWork
}

/** How long somebody in a crowd is ready to wait. */
const crowdWaitMs = 20_000
/** Of a lease among thousands. */
const hoardTtlMs = 5_000

/** Many of one thing at once: waiters for one key, leases of one process. */
export class MassWork {
  readonly #options: MassWorkOptions
  readonly #stop = new AbortController()

  constructor(options: MassWorkOptions) {
    this.#options = options
  }

  /** All want the same key, and give it back as soon as they have it. */
  async crowd({ id, key, waiters }: Extract<WorkerOrder, { do: 'crowd' }>): Promise<void> {
    const { lockWork } = this.#options
    const waiting = Array.from({ length: waiters }, async () => {
      const lease = await lockWork.acquire(key, { wait: crowdWaitMs })
      if (lease !== null) await lockWork.release(lease)
    })
    await Promise.all(waiting)
    tell({ tell: 'done', id })
  }

  /** Takes that many leases and keeps them; what of them is lost meanwhile is for a checker to judge. */
  async hoard({ id, prefix, leases, ms }: Extract<WorkerOrder, { do: 'hoard' }>): Promise<void> {
    const { journal } = this.#options
    const from = now()
    const held = await this.#takeAll(prefix, leases)
    await new Promise((resolve) => {
      setTimeout(resolve, ms)
      this.#stop.signal.addEventListener('abort', resolve)
    })
    const lost = held.filter((lease) => !lease.isHeld()).length
    journal.write({ is: 'hoarded', leases, from, held: held.length, lost })
    await Promise.all(held.map((lease) => lease.release()))
    tell({ tell: 'done', id })
  }

  stop(): void {
    this.#stop.abort()
  }

  async #takeAll(prefix: string, leases: number): Promise<readonly Lease[]> {
    const { locks } = this.#options
    const options = { ttl: hoardTtlMs, requestTimeout: 5_000, signal: this.#stop.signal }
    const keys = Array.from({ length: leases }, (_, index) => `${prefix}${index}`)
    const held: Lease[] = []
    while (keys.length > 0 && !this.#stop.signal.aborted) {
      const some = keys.splice(0, 1_000).map((key) => locks.acquire(key, options))
      for (const settled of await Promise.allSettled(some)) {
        if (settled.status === 'fulfilled' && settled.value !== null) held.push(settled.value)
      }
    }
    return held
  }
}
