import { randomBytes } from 'node:crypto'
import type { ContractStore, ContractSubject, RawStore } from 'leasehold/testing'
import { memoryDriver } from 'leasehold/memory'
import { memoryNamespace } from '../../../src/drivers/memory/table.ts'

export const memorySubject: ContractSubject = {
  name: 'memory',
  expects: {
    push: true,
    clock: 'host',
    keepsFreeRecords: true,
    raw: ['forgetKey', 'forgetTask', 'readFence', 'writeFence', 'countKeys'],
    unreachable: false,
  },
  open: async () => openMemoryStore(`contract-${randomBytes(6).toString('hex')}`),
}

/** Two drivers of one table, and a look at the table itself. */
export function openMemoryStore(store: string): ContractStore {
  return {
    first: memoryDriver({ store }),
    second: memoryDriver({ store }),
    raw: rawMemory(store),
    close: async () => {},
  }
}

export function rawMemory(store: string): RawStore {
  return {
    forgetKey: async (namespace, key) => {
      memoryNamespace(store, namespace).leases.delete(key)
    },
    forgetTask: async (namespace, task) => {
      memoryNamespace(store, namespace).tasks.delete(task)
    },
    readFence: async (namespace, key) => {
      const row = memoryNamespace(store, namespace).leases.get(key)
      return row === undefined ? null : String(row.fence)
    },
    writeFence: async (namespace, key, fence) => {
      const { leases } = memoryNamespace(store, namespace)
      const row = leases.get(key)
      if (row === undefined) throw new Error(`no record of ${key}`)
      leases.set(key, { ...row, fence })
    },
    countKeys: async (namespace) => memoryNamespace(store, namespace).leases.size,
  }
}
