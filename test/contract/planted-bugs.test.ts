import { describe, expect, it } from 'vitest'
import { type ContractStore, driverContract } from 'leasehold/testing'
import { memorySubject, rawMemory } from './subjects/memory.ts'
import { lapsedRunBugs } from './planted/lapsed-run-bugs.ts'
import { leaseBugs } from './planted/lease-bugs.ts'
import { operatorBugs } from './planted/operator-bugs.ts'
import { pushBugs } from './planted/push-bugs.ts'
import { type PlantedBug, plantedDriver } from './planted/planted-bug.ts'
import { taskBugs } from './planted/task-bugs.ts'

const contract = driverContract({
  ...memorySubject,
  expects: { ...memorySubject.expects, clock: 'server' },
})
const nothingWrong: Pick<PlantedBug, 'plant'> = { plant: () => ({}) }

let stores = 0

/** Runs the named behaviours on a driver with the bug; answers those that turned red. */
async function redOf(bug: Pick<PlantedBug, 'plant'>, names: readonly string[]): Promise<string[]> {
  const name = `planted ${++stores}`
  const store: ContractStore = {
    first: plantedDriver(bug, name),
    second: plantedDriver(bug, name),
    raw: rawMemory(name),
    close: async () => {},
  }
  const red: string[] = []
  for (const behaviour of contract) {
    if (!names.includes(behaviour.name)) continue
    try {
      await behaviour.run(store)
    } catch {
      red.push(behaviour.name)
    }
  }
  return red
}

describe('the contract suite can fail', () => {
  const bugs = [...leaseBugs, ...operatorBugs, ...pushBugs, ...taskBugs, ...lapsedRunBugs]

  it('has a name of its own for each planted bug', () => {
    expect(new Set(bugs.map(({ id }) => id)).size).toBe(bugs.length)
  })

  it('finds nothing in the driver that the bugs are planted in', async () => {
    const names = bugs.flatMap(({ caughtBy }) => caughtBy)
    for (const name of names) expect(contract.map((behaviour) => behaviour.name)).toContain(name)
    expect(await redOf(nothingWrong, names)).toEqual([])
  })

  // What waits in vain for a notice takes seconds, so these run at once; a moved clock is everybody's.
  it.concurrent.each(bugs.filter(({ needs }) => needs !== 'server clock'))('$id: $what', findsAll)
  it.each(bugs.filter(({ needs }) => needs === 'server clock'))('$id: $what', findsAll)
})

async function findsAll(bug: PlantedBug): Promise<void> {
  expect(await redOf(bug, bug.caughtBy)).toEqual([...bug.caughtBy].toSorted(byContractOrder))
}

function byContractOrder(one: string, other: string): number {
  const order = contract.map(({ name }) => name)
  return order.indexOf(one) - order.indexOf(other)
}
