import type { LockService } from 'leasehold'
import type { Hold, Mutex } from '../mutex.ts'

/** On whatever store. */
export function leaseholdMutex(locks: LockService): Mutex {
  const holdOf = (lease: Awaited<ReturnType<LockService['acquire']>>): Hold | null =>
    lease && {
      async release() {
        const outcome = await lease.release()
        if (outcome !== 'released') throw new Error(`The lease was ${outcome}`)
      },
    }
  return {
    tryAcquire: async (key) => holdOf(await locks.acquire(key)),
    acquire: async (key) => holdOf(await locks.acquire(key, { wait: Infinity })) as Hold,
    close: () => locks.close(),
  }
}
