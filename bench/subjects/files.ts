// What can lock a key for the processes of one host.
import { join } from 'node:path'
import { LockService } from 'leasehold'
import { sqliteDriver } from 'leasehold/sqlite'
import { type MutexSubject, noWaiting } from '../mutex.ts'
import { loadPeer } from '../peers.ts'
import { leaseholdMutex } from './leasehold.ts'

export interface FileConnections {
  /** Exists; shared by the processes that exclude each other. */
  readonly folder: string
}

interface LockfileModule {
  lock(file: string, options: object): Promise<() => Promise<void>>
}

export const fileSubjects: readonly MutexSubject<FileConnections>[] = [
  {
    name: 'leasehold',
    role: 'ours',
    open: async ({ folder }) => {
      const driver = sqliteDriver({ path: join(folder, 'locks.db') })
      return leaseholdMutex(new LockService({ driver, namespace: 'bench' }))
    },
  },
  {
    name: 'proper-lockfile',
    role: 'peer',
    open: async ({ folder }) => {
      const { default: lockfile } = await loadPeer<{ default: LockfileModule }>('proper-lockfile')
      return {
        async tryAcquire(key) {
          try {
            // There is no file to protect, just a name.
            const release = await lockfile.lock(join(folder, key), { realpath: false })
            return { release }
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code === 'ELOCKED') return null
            throw error
          }
        },
        acquire: noWaiting,
        close: async () => {},
      }
    },
  },
]
