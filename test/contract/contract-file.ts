import { seedsToPlay } from './seeds.ts'
import { afterAll, describe, it } from 'vitest'
import { type ContractRunner, type ContractSubject, runDriverContract } from 'leasehold/testing'

/** Makes a test file of the whole contract, and says at its end how much of it held. */
export function contractFile(subject: ContractSubject): void {
  let [run, held] = [0, 0]
  const runner: ContractRunner = {
    describe,
    afterAll,
    it: (name, body) =>
      it(name, async () => {
        run++
        await body()
        held++
      }),
  }
  const declared = runDriverContract(subject, runner, { seeds: seedsToPlay() })
  afterAll(() => {
    const left = declared - run
    const leftOut = left === 0 ? '' : `, ${left} were not run`
    console.info(`contract: ${subject.name}: ${held} of ${run} behaviours hold${leftOut}`)
  })
}
