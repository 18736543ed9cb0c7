import { afterAll, it } from 'vitest'
import type { ContractStore, ContractSubject } from 'leasehold/testing'
import { type Extent, playHistories } from './histories.ts'
import { LockModel } from './lock-model.ts'
import { expectBeliefs, keys, lockMoves } from './lock-moves.ts'
import { LockWorld } from './lock-world.ts'

/** Makes a test file of one driver: random histories on a real store, beside a model that shares no code with it. */
export function modelFile(subject: ContractSubject, extent: Extent): void {
  let opened: Promise<ContractStore> | undefined
  it(`locks on ${subject.name} do what the model says`, async () => {
    await playLocks(await (opened ??= subject.open()), extent)
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
