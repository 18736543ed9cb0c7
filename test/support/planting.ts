// Drivers with a bug planted into one of their modules, and checks that have to notice it.
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type ContractStore, type ContractSubject, driverContract } from 'leasehold/testing'
import * as errors from '../../src/core/errors.ts'

/** One sentence about a driver, and how to find out whether it holds: rejects with an assertion error if not. */
export interface Check<Trial> {
  readonly sentence: string
  run(trial: Trial): Promise<void>
}

/** A driver got wrong in one way. */
export interface PlantedBug<Trial> {
  /** What is done wrong. */
  readonly name: string
  /** The module that is wrong, below src/drivers. */
  readonly module: string
  /** What the module exports instead. */
  readonly plant: (original: Exports) => object
  /** What the bug needs in the store besides. */
  readonly prepare?: (trial: Trial) => Promise<unknown>
  /** The checks that have to turn red. */
  readonly caughtBy: readonly Check<Trial>[]
}

/** What a module exports. Bugs are about named modules, whose shapes their authors know. */
// oxlint-disable-next-line typescript/no-explicit-any -- one type for the exports of any module
export type Exports = Record<string, any>

type Text = string | ((...args: never[]) => string)

/** Plants other words into a text that a module exports, or into what a function of it makes; all of them must be there. */
export function reword(
  name: string,
  ...replacements: readonly (readonly [words: string, wrong: string])[]
): PlantedBug<never>['plant'] {
  const reworded = (text: string): string =>
    replacements.reduce((before, [words, wrong]) => {
      if (!before.includes(words)) throw new Error(`${name} does not say ${JSON.stringify(words)}.`)
      return before.replaceAll(words, () => wrong)
    }, text)
  return (original) => {
    const text = original[name] as Text
    return {
      [name]: typeof text === 'string' ? reworded(text) : (...args: never[]) => reworded(text(...args)),
    }
  }
}

/** Tests that each check holds for the driver as it is, and that each bug turns its checks red. */
export function testPlanted<Module, Trial>(options: {
  readonly bugs: readonly PlantedBug<Trial>[]
  /** Imports the driver, with whatever is planted in it. */
  readonly load: () => Promise<Module>
  /** @param reload loads one more copy of the same */
  readonly trial: (module: Module, reload: () => Promise<Module>) => Trial
}): void {
  const { bugs, load, trial } = options
  afterEach(() => {
    for (const { module } of bugs) vi.doUnmock(pathOf(module))
    vi.resetModules()
  })
  const loadTrial = async (bug: PlantedBug<Trial> | null): Promise<Trial> => {
    const reload = () => loadWith(bug, load)
    return trial(await reload(), reload)
  }

  describe('as the driver is', () => {
    const checks = new Set(bugs.flatMap(({ caughtBy }) => caughtBy))
    it.each([...checks].map((check) => [check.sentence, check] as const))('%s', async (_sentence, check) => {
      await check.run(await loadTrial(null))
    })
  })

  describe('a check turns red where', () => {
    it.each(bugs.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
      const planted = await loadTrial(bug)
      await bug.prepare?.(planted)
      for (const check of bug.caughtBy) {
        const caught: unknown = await check.run(planted).then(
          () => null,
          (error: unknown) => error,
        )
        expect(caught, `caught by "${check.sentence}"`).toMatchObject({ name: 'AssertionError' })
      }
    })
  })
}

/** A behaviour of the contract as a check. */
export function contractCheck<Trial>(
  expects: ContractSubject['expects'],
  open: (trial: Trial) => Promise<ContractStore>,
): (name: string) => Check<Trial> {
  const contract = driverContract({ name: 'planted', expects, open: () => Promise.reject(new Error()) })
  return (name) => {
    const behaviour = contract.find((one) => one.name === name)
    if (behaviour === undefined) throw new Error(`The contract has no behaviour called ${name}.`)
    return {
      sentence: name,
      run: async (trial) => {
        const store = await open(trial)
        try {
          await behaviour.run(store)
        } finally {
          await store.close()
        }
      },
    }
  }
}

async function loadWith<Module>(bug: PlantedBug<never> | null, load: () => Promise<Module>): Promise<Module> {
  vi.resetModules()
  // Faults are told by their class.
  vi.doMock(fileURLToPath(new URL('../../src/core/errors.ts', import.meta.url)), () => errors)
  if (bug !== null) {
    vi.doMock(pathOf(bug.module), async (importOriginal) => {
      const original = await importOriginal<Exports>()
      return { ...original, ...bug.plant(original) }
    })
  }
  return load()
}

function pathOf(module: string): string {
  return fileURLToPath(new URL(`../../src/drivers/${module}.ts`, import.meta.url))
}
