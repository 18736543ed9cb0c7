import type { NoticeListener } from '../../driver/driver.ts'
import type { LeaseRow } from '../../driver/lease-rules.ts'
import type { RunRecord } from '../../driver/task-driver.ts'
import type { TaskRow } from '../../driver/task-rules.ts'

/** A row of the log: `endedAt` is when its end was recorded, of a lost run when it was found. */
export interface LoggedRun extends RunRecord {
  /** Of a lost run: when its lease ended. */
  readonly lapsedAt: number | null
}

/** Everything that the in-process store knows about one namespace. */
export interface MemoryNamespace {
  readonly leases: Map<string, LeaseRow>
  readonly tasks: Map<string, TaskRow>
  /** The run log of each task, by slot and attempt. */
  readonly runs: Map<string, Map<string, LoggedRun>>
  readonly listeners: Set<NoticeListener>
  /** The greatest fence issued so far; survives the purge of the records. */
  floor: number
  /** The control version. */
  version: number
}

/** Goes up when the shape of the table changes, so that copies of two releases in one process never mix. */
const tableSymbol = Symbol.for('leasehold.memory.v1')

type Stores = Map<string, Map<string, MemoryNamespace>>

/**
 * The namespace of a store, made on first use.
 *
 * The table is the one piece of mutable module state in this package. It hangs on `globalThis`, so that a lock
 * excludes across duplicate copies of the module: ESM and CommonJS builds, two installed versions, a bundle.
 */
export function memoryNamespace(store: string, namespace: string): MemoryNamespace {
  const holder = globalThis as { [tableSymbol]?: Stores }
  const stores = (holder[tableSymbol] ??= new Map())
  const namespaces = entry(stores, store, () => new Map<string, MemoryNamespace>())
  return entry(namespaces, namespace, newNamespace)
}

/** The value of a key, made and put there if it is missing. */
export function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

function newNamespace(): MemoryNamespace {
  return {
    leases: new Map(),
    tasks: new Map(),
    runs: new Map(),
    listeners: new Set(),
    floor: 0,
    version: 0,
  }
}
