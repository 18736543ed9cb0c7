import { memoryDriver } from 'leasehold/memory'
import type { Driver, DriverSession, LockDriver, TaskDriver } from 'leasehold/driver'
import type { MemoryNamespace } from '../../../src/drivers/memory/table.ts'
import { memoryNamespace } from '../../../src/drivers/memory/table.ts'

/** A driver that is wrong in one way, made from the in-process one. */
export interface PlantedBug {
  /** Short and stable, for reports: `'refresh-shortens'`. */
  readonly id: string
  /** What is wrong, as a sentence. */
  readonly what: string
  /** Whether the contract finds it at once, or needs a look into the store, push, or a server's clock for it. */
  readonly needs?: 'raw' | 'push' | 'server clock' | undefined
  /** Names of behaviours of which at least one must turn red. */
  readonly caughtBy: readonly string[]
  plant(context: PlantingContext): Wrong
}

export interface PlantingContext {
  /** The right locks and tasks of a namespace. */
  readonly locks: LockDriver
  readonly tasks: TaskDriver
  /** What they are made of, for bugs that a wrapper cannot make. */
  readonly table: MemoryNamespace
  readonly namespace: string
  /** The store's clock, which does not follow this process's `Date`. */
  readonly now: () => number
  /** Opens another namespace of the same store, rightly. */
  readonly elsewhere: (namespace: string) => DriverSession
}

/** What takes the place of what is right. */
export interface Wrong {
  readonly locks?: Partial<LockDriver>
  readonly tasks?: Partial<TaskDriver>
  readonly listen?: DriverSession['listen']
}

/** A clock that a moved `Date` does not move: what a server's is to its clients. */
const storeNow = (): number => performance.timeOrigin + performance.now()

/** The in-process driver with a bug in it. Says that it has a server's clock, so that clock bugs can be told. */
export function plantedDriver(bug: Pick<PlantedBug, 'plant'>, store: string): Driver {
  const right = memoryDriver({ store, now: storeNow })
  return {
    name: 'planted',
    abilities: { ...right.abilities, clock: 'server', maxBatch: 100 },
    open(namespace) {
      const session = right.open(namespace)
      const { locks, tasks } = session
      const wrong = bug.plant({
        locks,
        tasks,
        table: memoryNamespace(store, namespace),
        namespace,
        now: storeNow,
        elsewhere: (other) => right.open(other),
      })
      return {
        locks: { ...locks, ...wrong.locks },
        tasks: { ...tasks, ...wrong.tasks },
        listen: wrong.listen ?? session.listen,
        close: () => session.close(),
      }
    },
  }
}
