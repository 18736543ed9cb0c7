import { InvalidOptionError } from '../core/errors.ts'
import { holds, readOptions } from '../core/read-options.ts'
import type { ContractBehaviour, ContractStore, ContractSubject } from './contract-subject.ts'
import { meets } from './contract-subject.ts'
import { allBehaviours } from './contract/behaviours.ts'
import { statedAbilities } from './contract/abilities.ts'

export interface DriverContractOptions {
  /**
   * The random histories to play, by their seeds. More find more and take longer (some 150 calls each); the same seed is
   * the same history. Default is `[1, 2, 3]`.
   */
  readonly seeds?: readonly number[] | undefined
}

/**
 * The contract of `LockDriver` and `TaskDriver` as behaviours to run: those that apply to this subject, in a fixed
 * order. They know no test framework; {@link runDriverContract} hands them to one.
 *
 * @throws InvalidOptionError for a subject that is none, and for seeds that are no numbers
 *
 * @example
 * ```ts
 * const store = await subject.open()
 * for (const behaviour of driverContract(subject)) await behaviour.run(store)
 * await store.close()
 * ```
 */
export function driverContract(
  subject: ContractSubject,
  options: DriverContractOptions = {},
): readonly ContractBehaviour[] {
  if (!holds(() => isSubject(subject))) {
    throw new InvalidOptionError(
      'subject',
      'subject must be a ContractSubject: its name, what it expects, and open().',
    )
  }
  const { seeds = [1, 2, 3] } = readOptions('driverContract', options, ['seeds'])
  if (!holds(() => seeds.every((seed) => typeof seed === 'number'))) {
    throw new InvalidOptionError('seeds', 'seeds must be an array of numbers.')
  }
  return [...statedAbilities(subject.expects), ...allBehaviours(seeds)].filter((behaviour) =>
    behaviour.requires.every((requirement) => meets(subject.expects, requirement)),
  )
}

function isSubject({ name, expects, open }: ContractSubject): boolean {
  return typeof name === 'string' && Array.isArray(expects.raw) && typeof open === 'function'
}

/** The three functions that vitest, jest and `node:test` (there `afterAll` is called `after`) have in common. */
export interface ContractRunner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
  afterAll(body: () => Promise<void>): unknown
}

/**
 * Declares the whole contract as tests, one `describe` per group. The store is opened by the first test that runs and
 * closed after the last. Answers how many behaviours were declared.
 *
 * @example
 * ```ts
 * import { afterAll, describe, it } from 'vitest'
 * runDriverContract(subject, { describe, it, afterAll })
 * ```
 */
export function runDriverContract(
  subject: ContractSubject,
  runner: ContractRunner,
  options: DriverContractOptions = {},
): number {
  for (const name of ['describe', 'it', 'afterAll'] as const) {
    if (holds(() => typeof runner[name] === 'function')) continue
    throw new InvalidOptionError('runner', `runner must have the function ${name}, as vitest and jest do.`)
  }
  const contract = driverContract(subject, options)
  let opened: Promise<ContractStore> | undefined
  runner.describe(`driver contract: ${subject.name}`, () => {
    for (const group of new Set(contract.map((behaviour) => behaviour.group))) {
      runner.describe(group, () => {
        for (const behaviour of contract) {
          if (behaviour.group !== group) continue
          runner.it(behaviour.name, async () => behaviour.run(await (opened ??= subject.open())))
        }
      })
    }
    runner.afterAll(async () => {
      // A store that did not open has failed every test already.
      const store = await opened?.catch(() => undefined)
      await store?.close()
    })
  })
  return contract.length
}
