import { describe, expect, it } from 'vitest'
import type { ContractStore } from 'leasehold/testing'
import { lapsedRunBugs } from '../contract/planted/lapsed-run-bugs.ts'
import { leaseBugs } from '../contract/planted/lease-bugs.ts'
import { operatorBugs } from '../contract/planted/operator-bugs.ts'
import { type PlantedBug, plantedDriver } from '../contract/planted/planted-bug.ts'
import { taskBugs } from '../contract/planted/task-bugs.ts'
import { rawMemory } from '../contract/subjects/memory.ts'
import type { Extent } from './histories.ts'
import { playLocks, playTasks } from './model-file.ts'

const bugs = [...leaseBugs, ...operatorBugs, ...taskBugs, ...lapsedRunBugs]
const extent: Extent = { histories: 60, moves: 40, isCutDown: false }

let stores = 0

function storeWith(bug: Pick<PlantedBug, 'plant'>): ContractStore {
  const name = `model ${++stores}`
  return {
    first: plantedDriver(bug, name),
    second: plantedDriver(bug, name),
    raw: rawMemory(name),
    close: async () => {},
  }
}

function planted(id: string): ContractStore {
  const bug = bugs.find((one) => one.id === id)
  if (bug === undefined) throw new Error(`There is no such bug: ${id}.`)
  return storeWith(bug)
}

describe('the model finds a bug of the store in leases:', () => {
  it.each([
    'grant-while-held',
    'fence-starts-over-after-purge',
    'repeated-acquire-is-refused',
    'refresh-without-token',
    'release-without-token',
    'revoke-frees-at-once',
  ])('%s', async (id) => {
    await expect(playLocks(planted(id), extent)).rejects.toThrow('Counterexample')
  })
})

describe('the model finds a bug of the store in tasks:', () => {
  it.each([
    'mark-removed-on-completion',
    'mark-in-the-future',
    'claim-without-after',
    'cancelled-run-retried',
    'complete-without-fence',
  ])('%s', async (id) => {
    await expect(playTasks(planted(id), extent)).rejects.toThrow('Counterexample')
  })
})

it('finds nothing in the driver that the bugs are planted in', async () => {
  const few = { ...extent, histories: 10 }
  await playLocks(storeWith({ plant: () => ({}) }), few)
  await playTasks(storeWith({ plant: () => ({}) }), few)
})

it('cuts a history that fails down to the moves that it takes', async () => {
  const failure: unknown = await playLocks(planted('grant-while-held'), { ...extent, isCutDown: true }).catch(
    (error: unknown) => error,
  )
  const [, moves = ''] = /Counterexample: \[(.*?)\s*\/\*replayPath/.exec(String(failure)) ?? []
  expect(moves).toMatch(/acquire|run/)
  expect(moves.split('),').length).toBeLessThanOrEqual(3)
})
