import { requireOption } from '../../core/errors.ts'
import { readOptions } from '../../core/read-options.ts'
import type { Driver } from '../../driver/driver.ts'
import { memoryLocks } from './locks.ts'
import { openChannel } from './notices.ts'
import { memoryNamespace } from './table.ts'
import { memoryTasks } from './tasks.ts'

export interface MemoryDriverOptions {
  /**
   * Which of the process's tables to use. Drivers with the same name share every lock and task; another name is
   * another store, which is how tests keep out of each other's way. Default is `'default'`.
   */
  readonly store?: string | undefined
  /**
   * The clock, in milliseconds since the epoch, for tests that fake the time. It belongs to this driver, not to the
   * table: give the same one to all drivers of a store. Default is the host's clock.
   */
  readonly now?: (() => number) | undefined
}

/**
 * The in-process driver: a store in this process's memory, for one process, for development and for tests.
 *
 * It excludes between all services of one process, duplicate copies of this package included; not between worker
 * threads, and not between processes. Everything is forgotten when the process ends. All promises hold, with push.
 *
 * @throws InvalidOptionError for an option of the wrong type
 *
 * @example
 * const locks = new LockService({ driver: memoryDriver() })
 */
export function memoryDriver(options: MemoryDriverOptions = {}): Driver {
  const { store, leaseNow, slotNow } = resolveMemoryDriverOptions(options)
  return {
    name: 'memory',
    abilities: { push: true, clock: 'host', reach: 'process', minTtlMs: 1, maxBatch: 1000 },
    open(namespace) {
      const table = memoryNamespace(store, namespace)
      const channels = new Set<{ close(): Promise<void> }>()
      return {
        locks: memoryLocks(table, leaseNow),
        tasks: memoryTasks(table, slotNow),
        async listen(listener) {
          const channel = openChannel(table, listener)
          channels.add(channel)
          return channel
        },
        async close() {
          await Promise.all([...channels].map((channel) => channel.close()))
          channels.clear()
        },
      }
    },
  }
}

interface ResolvedMemoryDriverOptions {
  readonly store: string
  /** Leases last a time, so their clock does not step when somebody sets the host's. */
  readonly leaseNow: () => number
  /** Slots are moments of the calendar, so theirs is the wall clock, after a suspend too. */
  readonly slotNow: () => number
}

function resolveMemoryDriverOptions(options: MemoryDriverOptions): ResolvedMemoryDriverOptions {
  const { store = 'default', now } = readOptions('memoryDriver', options, ['store', 'now'])
  const isName = typeof store === 'string' && store !== ''
  requireOption(isName, 'store', 'a non-empty string: the name of a table in this process')
  const isClock = now === undefined || typeof now === 'function'
  requireOption(isClock, 'now', 'a function that returns milliseconds since the epoch')
  const leaseNow = now ?? (() => performance.timeOrigin + performance.now())
  const slotNow = now ?? (() => Date.now())
  return { store, leaseNow: () => Math.floor(leaseNow()), slotNow: () => Math.floor(slotNow()) }
}
