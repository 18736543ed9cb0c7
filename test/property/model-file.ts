import { afterAll, it } from 'vitest'
import type { ContractStore, ContractSubject } from 'leasehold/testing'
import { type Extent, playHistories } from './histories.ts'
import { LockModel } from './lock-model.ts'
import { expectBeliefs, keys, lockMoves } from './lock-moves.ts'
import { LockWorld } from './lock-world.ts'
import { TaskModel } from './task-model.ts'
import { compareAll, taskMoves, tasks, TaskWorld } from './task-moves.ts'

/** Longer than a search for the shortest history that fails. */
const timeoutMs = 120_000

/** Makes a test file of one driver: random histories on a real store, beside a model that shares no code with it. */
export function modelFile(subject: ContractSubject, extent: Extent): void {
  let opened: Promise<ContractStore> | undefined
  it(`locks on ${subject.name} do what the model says`, { timeout: timeoutMs }, async () => {
    await playLocks(await (opened ??= subject.open()), extent)
  })
  it(`tasks on ${subject.name} do what the model says`, { timeout: timeoutMs }, async () => {
    await playTasks(await (opened ??= subject.open()), extent)
  })
  afterAll(async () => {
    const store = await opened?.catch(() => undefined)
    await store?.close()
  })
}

export async function playLocks(store: ContractStore, extent: Extent): Promise<void> {
  await playHistories(lockMoves, extent, async () => {
    const world = new LockWorld(store)
    return {
      model: new LockModel(keys),
      world,
      afterEach: () => expectBeliefs(world),
      end: () => world.close(),
    }
  })
}

export async function playTasks(store: ContractStore, { histories, moves, ...how }: Extent): Promise<void> {
  // They wait for hardly anything, and so there can be more of them.
  const extent = { histories: 2 * histories, moves: 2 * moves, ...how }
  await playHistories(taskMoves, extent, async () => {
    const world = new TaskWorld(store)
    const model = new TaskModel()
    for (const task of tasks) await world.register(model, task)
    return { model, world, afterAll: () => compareAll(model, world), end: () => world.close() }
  })
}
