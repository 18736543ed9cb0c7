import type { Mutex } from '../mutex.ts'
import { loadPeer } from '../peers.ts'

const ttlMs = 30_000

interface VerrouModule {
  readonly LockFactory: new (store: unknown) => {
    createLock(
      key: string,
      ttl: number,
    ): {
      acquireImmediately(): Promise<boolean>
      acquire(options?: object): Promise<boolean>
      release(): Promise<void>
    }
  }
}

/** @param store what one of its drivers' factories made */
export async function verrouMutex(store: unknown): Promise<Mutex> {
  const { LockFactory } = await loadPeer<VerrouModule>('@verrou/core')
  const factory = new LockFactory(store)
  return {
    async tryAcquire(key) {
      const lock = factory.createLock(key, ttlMs)
      return (await lock.acquireImmediately()) ? lock : null
    },
    async acquire(key) {
      const lock = factory.createLock(key, ttlMs)
      if (!(await lock.acquire())) throw new Error('It gave up waiting')
      return lock
    },
    close: async () => {},
  }
}
