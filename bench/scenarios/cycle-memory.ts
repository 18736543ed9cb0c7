import { LockService } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { assertExcludes, cycle } from '../mutex.ts'
import type { Scenario } from '../scenario.ts'
import { leaseholdMutex } from '../subjects/leasehold.ts'
import { throughputs } from './cycle.ts'

export const memoryCycle: Scenario = {
  name: 'memory.cycle',
  what: 'acquire and release of fresh keys in the process itself: what the library costs without a store',
  async run(_stores, pace) {
    const driver = memoryDriver({ store: 'bench' })
    const mutex = leaseholdMutex(new LockService({ driver, namespace: 'bench' }))
    await assertExcludes('leasehold', mutex)
    const turns = [1, 100].map((callers) => ({
      name: callers === 1 ? 'leasehold' : `leasehold, ${callers} callers`,
      role: 'ours' as const,
      run: (ms: number) => cycle(mutex, callers, ms),
    }))
    const findings = await throughputs(turns, pace)
    await mutex.close()
    return findings
  },
}
