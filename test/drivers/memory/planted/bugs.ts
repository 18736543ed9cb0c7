import { expect } from 'vitest'
import type { memoryDriver } from 'leasehold/memory'
import type { MemoryNamespace } from '../../../../src/drivers/memory/table.ts'
import type { Check, PlantedBug } from '../../../support/planting.ts'

/** Loads a copy of the driver, as it is or with a bug in it. */
export interface Trial {
  load(): Promise<{ readonly memoryDriver: typeof memoryDriver }>
}

const call = { attempt: 1, lockedRows: 'skip' } as const

const copiesShareATable: Check<Trial> = {
  sentence: 'two copies of the module in one process exclude each other',
  async run({ load }) {
    const outcomes: (string | undefined)[] = []
    const store = `copies ${Math.random()}`
    for (const token of ['one', 'two']) {
      const { locks } = (await load()).memoryDriver({ store }).open('ns')
      const wish = { key: 'key', token, ttlMs: 60_000, holder: '{}', waitingMs: 0 }
      outcomes.push((await locks.acquire([wish], call))[0]?.outcome)
    }
    expect(outcomes).toEqual(['granted', 'held'])
  },
}

/** Ways to get the in-process driver wrong. What a lease and a slot are, is planted in the contract. */
export const bugs: readonly PlantedBug<Trial>[] = [
  {
    name: 'the table is a variable of the module',
    module: 'memory/table',
    plant: ({ memoryNamespace, ...rest }) => {
      const copy = Math.random()
      const make = memoryNamespace as (store: string, namespace: string) => MemoryNamespace
      return {
        ...rest,
        memoryNamespace: (store: string, namespace: string) => make(`${store} ${copy}`, namespace),
      }
    },
    caughtBy: [copiesShareATable],
  },
]
