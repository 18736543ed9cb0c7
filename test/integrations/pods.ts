import { LockService, type RunHistoryEntry, ScheduledTaskStore, TaskScheduler } from 'leasehold'
import type { Driver } from 'leasehold/driver'
import { memoryDriver } from 'leasehold/memory'
import { faultyDriver, type FaultyDriver } from 'leasehold/testing'
import { onTestFinished as onTheTestFinished } from 'vitest'

let stores = 0

export interface Pods {
  /** A process more: its decider. */
  pod(): ScheduledTaskStore
  /** Between all of them and the store. */
  readonly driver: FaultyDriver
  readonly locks: LockService
  history(task: string): Promise<RunHistoryEntry[]>
}

/**
 * Some processes on one store in memory, for schedulers with timers of their own: in real time.
 *
 * @param onTestFinished that of its own context in a test that runs beside others
 */
export function pods(onTestFinished: typeof onTheTestFinished = onTheTestFinished): Pods {
  const driver = faultyDriver(memoryDriver({ store: `pods ${++stores}` }))
  const services: LockService[] = []
  const open = (through: Driver): LockService => {
    const locks = new LockService({ driver: through, requestTimeout: '200ms' })
    services.push(locks)
    return locks
  }
  onTestFinished(async () => {
    await Promise.all(services.map((locks) => locks.close()))
  })
  const locks = open(driver.driver)
  return {
    driver,
    locks,
    pod: () => new ScheduledTaskStore({ locks: open(driver.driver) }),
    history: (task) => new TaskScheduler({ locks }).history(task),
  }
}

/** Resolves with the values of so many calls of `push`. */
export function collected<Value>(count: number): {
  push(value: Value): void
  readonly all: Promise<Value[]>
} {
  const values: Value[] = []
  let finish: (values: Value[]) => void = () => {}
  const all = new Promise<Value[]>((resolve) => (finish = resolve))
  return {
    all,
    push(value) {
      values.push(value)
      if (values.length === count) finish(values)
    },
  }
}
