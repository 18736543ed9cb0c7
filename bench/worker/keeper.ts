import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Lease, LockService } from 'leasehold'
import { openDriver, type StorePlace } from './open-driver.ts'
import type { Verbs } from './protocol.ts'

/** What holding leases has cost a process. */
export interface KeepingCost {
  readonly cpuPercent: number
  readonly eventLoopDelayMsP99: number
  readonly eventLoopDelayMsMax: number
  readonly leasesLost: number
}

/** Holds many leases of ours, and looks at what that costs its process. */
export async function openKeeper(place: StorePlace): Promise<Verbs> {
  const { driver, close } = await openDriver(place)
  const locks = new LockService({ driver, namespace: 'bench' })
  const leases: Lease[] = []
  const take = async (count: number): Promise<void> => {
    const taken = await Promise.all(
      Array.from({ length: count }, (_, index) => locks.acquire(`lease:${index}`, { ttl: '30s' })),
    )
    for (const lease of taken) {
      if (lease === null) throw new Error('A fresh key was refused')
      leases.push(lease)
    }
  }
  return {
    take,
    async keep(ms: number): Promise<KeepingCost> {
      const delays = monitorEventLoopDelay({ resolution: 1 })
      const cpuBefore = process.cpuUsage()
      const startedAt = performance.now()
      delays.enable()
      await sleep(ms)
      delays.disable()
      const { user, system } = process.cpuUsage(cpuBefore)
      return {
        cpuPercent: (user + system) / 10 / (performance.now() - startedAt),
        // What it measures is the time from timer to timer, of 1 ms each.
        eventLoopDelayMsP99: delays.percentile(99) / 1e6 - 1,
        eventLoopDelayMsMax: delays.max / 1e6 - 1,
        leasesLost: leases.filter((lease) => !lease.isHeld()).length,
      }
    },
    /** The heap that each of so many more leases takes. Needs --expose-gc. */
    async heapPerLease(count: number): Promise<number> {
      // What is made once, and code that is compiled, belong to no lease.
      await take(1_000)
      await Promise.all(leases.splice(0).map((lease) => lease.release()))
      const before = await settledHeap()
      await take(count)
      return ((await settledHeap()) - before) / count
    },
    async close() {
      await locks.close()
      await close()
    },
  }
}

async function settledHeap(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    globalThis.gc?.()
    await sleep(20)
  }
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
