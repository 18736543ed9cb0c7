import type { Lease } from 'leasehold'
import { setTimeout as sleep } from 'node:timers/promises'
import type { UsedLocks } from './lock-work.ts'
import type { PlantedBug } from './planted-bugs.ts'

/** Bugs between a service and whoever uses it. */
export const plantedServices = {
  'down-is-held': {
    what: 'a store that cannot be asked is taken for a key that another holds',
    locks: (right) => ({
      ...used(right),
      acquire: (...args) => right.acquire(...args).catch(() => null),
    }),
  },
  'wait-without-end': {
    what: 'a waiter whose time is up begins to wait anew',
    locks: (right) => ({
      ...used(right),
      acquire: async (...args) =>
        (await right.acquire(...args)) ?? (await right.acquire(args[0], { ...args[1], wait: 4_000 })),
    }),
  },
  'release-takes-its-time': {
    what: 'a release waits for longer than a request may take',
    locks: (right) => ({
      ...used(right),
      acquire: async (...args) => {
        const lease = await right.acquire(...args)
        return lease === null ? null : releasedLate(lease)
      },
    }),
  },
  'release-answers-for-the-callback': {
    what: 'how the release went takes the place of what the callback threw',
    locks: (right) => ({
      ...used(right),
      runExclusive: (key, work, options) => {
        let hasBegun = false
        const begin = (lease: Lease): Promise<number> => {
          hasBegun = true
          return work(lease)
        }
        return right.runExclusive(key, begin, options).catch((error: unknown) => {
          throw hasBegun ? new Error('The lease was released.') : error
        })
      },
    }),
  },
} satisfies Record<string, PlantedBug>

function used(locks: UsedLocks): UsedLocks {
  return { acquire: locks.acquire.bind(locks), runExclusive: locks.runExclusive.bind(locks) }
}

/** The same lease, whose release dawdles. */
function releasedLate(lease: Lease): Lease {
  return new Proxy(lease, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      if (name !== 'release') return value.bind(target) as unknown
      return async () => {
        await sleep(2_000)
        return target.release()
      }
    },
  })
}
