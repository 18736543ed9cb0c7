import type { Driver, DriverSession } from 'leasehold/driver'
import { type ContractStore, driverContract } from 'leasehold/testing'
import type { LockServiceOptions } from '../../src/core/options.ts'
import { drawPlan } from '../../simulator/draw-plan.ts'
import type { PromiseName } from '../../simulator/checkers/violation.ts'
import type { SystemUnderTrial } from '../../simulator/simulate.ts'
import { tryPlan } from '../../simulator/trial.ts'
import { lapsedRunBugs } from '../contract/planted/lapsed-run-bugs.ts'
import { leaseBugs } from '../contract/planted/lease-bugs.ts'
import { operatorBugs } from '../contract/planted/operator-bugs.ts'
import { type PlantedBug, plantedDriver } from '../contract/planted/planted-bug.ts'
import { pushBugs } from '../contract/planted/push-bugs.ts'
import { taskBugs } from '../contract/planted/task-bugs.ts'
import { memorySubject, rawMemory } from '../contract/subjects/memory.ts'
import type { Bug } from '../core/planted/bug.ts'
import { bugs as coreBugs } from '../core/planted/bugs.ts'
import { coreWith } from '../core/planted/plant.ts'

/** What noticed a bug, and after how much. */
export interface Caught {
  readonly by: string
  readonly after: number
}

const storeBugs = [...leaseBugs, ...operatorBugs, ...pushBugs, ...taskBugs, ...lapsedRunBugs]
const contract = driverContract({
  ...memorySubject,
  expects: { ...memorySubject.expects, clock: 'server' },
})
let stores = 0

export function storeBug(id: string): PlantedBug {
  return named(storeBugs, (bug) => bug.id === id, id)
}

export function coreBug(name: string): Bug {
  return named(coreBugs, (bug) => bug.name === name, name)
}

/** Runs the behaviours of the contract that have to notice it; the calls of the driver that the first one made. */
export async function caughtByContract(bug: PlantedBug): Promise<Caught> {
  for (const by of bug.caughtBy) {
    const behaviour = named(contract, (one) => one.name === by, by)
    const name = `on show ${++stores}`
    const calls = { count: 0 }
    const driver = counted(plantedDriver(bug, name), calls)
    const store: ContractStore = {
      first: driver,
      second: driver,
      raw: rawMemory(name),
      close: async () => {},
    }
    try {
      await behaviour.run(store)
    } catch {
      return { by, after: calls.count }
    }
  }
  throw new Error(`Nothing notices ${bug.id}.`)
}

/** The same, of the checks of the core. */
export async function caughtByCore(bug: Bug): Promise<Caught> {
  const planted = await coreWith(bug)
  for (const check of bug.caughtBy) {
    const calls = { count: 0 }
    class LockService extends planted.LockService {
      constructor(options: LockServiceOptions) {
        super(options.driver === undefined ? options : { ...options, driver: counted(options.driver, calls) })
      }
    }
    try {
      await check.run({ ...planted, LockService })
    } catch {
      return { by: check.sentence, after: calls.count }
    }
  }
  throw new Error(`Nothing notices that ${bug.name}.`)
}

/** How many seeds it takes until a simulated fleet breaks the promise. */
export async function caughtBySimulator(promise: PromiseName, system: SystemUnderTrial): Promise<Caught> {
  for (let seed = 1; seed <= 200; seed++) {
    const { violations } = await tryPlan(drawPlan(seed), system)
    if (violations.some((violation) => violation.promise === promise)) return { by: promise, after: seed }
  }
  throw new Error(`No simulated fleet breaks ${promise}.`)
}

export async function systemWith(name: string): Promise<SystemUnderTrial> {
  const ofStore = storeBugs.find(({ id }) => id === name)
  if (ofStore !== undefined) return { plant: ofStore.plant }
  const { LockService } = await coreWith(coreBug(name))
  // Of the same loading, or it would not know the service.
  const { TaskScheduler } = await import('../../src/scheduler/task-scheduler.ts')
  const { ScheduledTaskStore } = await import('../../src/scheduler/scheduled-task-store.ts')
  return { classes: { LockService, TaskScheduler, ScheduledTaskStore } }
}

/** The same driver, whose calls are counted. */
function counted(driver: Driver, calls: { count: number }): Driver {
  const counting = <Verbs extends object>(verbs: Verbs): Verbs =>
    new Proxy(verbs, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          calls.count++
          return Reflect.apply(value, target, args)
        }
      },
    })
  return {
    ...driver,
    open(namespace): DriverSession {
      const session = driver.open(namespace)
      return {
        locks: counting(session.locks),
        tasks: counting(session.tasks),
        listen: session.listen?.bind(session),
        close: () => session.close(),
      }
    },
  }
}

function named<One>(all: readonly One[], isIt: (one: One) => boolean, name: string): One {
  const found = all.find(isIt)
  if (found === undefined) throw new Error(`There is no ${name}.`)
  return found
}
