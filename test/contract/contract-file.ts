import { afterAll, describe, it } from 'vitest'
import { type ContractRunner, type ContractSubject, runDriverContract } from 'leasehold/testing'

/** Makes a test file of the whole contract, and says at its end how much of it held. */
export function contractFile(subject: ContractSubject): void {
  let held = 0
  const runner: ContractRunner = {
    describe,
    afterAll,
    it: (name, body) =>
      it(name, async () => {
        await body()
        held++
      }),
  }
  const declared = runDriverContract(subject, runner)
  afterAll(() => {
    console.info(`contract: ${subject.name}: ${held} of ${declared} behaviours hold`)
  })
}
