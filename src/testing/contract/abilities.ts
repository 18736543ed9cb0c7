import assert from 'node:assert/strict'
import type { DriverAbilities } from '../../driver/index.ts'
import type { ContractBehaviour, ContractExpectations } from '../contract-subject.ts'
import { group } from './stage.ts'

/** That the driver states what its subject expects, and nothing that cannot be. */
export function statedAbilities(expects: ContractExpectations): readonly ContractBehaviour[] {
  return group('opening: abilities', (it) => {
    it('the driver has a name and states abilities that can be', async ({ drivers }) => {
      assert.match(drivers.first.name, /^[a-z][a-z0-9-]*$/)
      const { push, clock, reach, minTtlMs, maxBatch }: DriverAbilities = drivers.first.abilities
      assert.equal(typeof push, 'boolean')
      assert.ok(['server', 'host'].includes(clock), clock)
      assert.ok(['process', 'host', 'network'].includes(reach), reach)
      assert.ok(Number.isSafeInteger(minTtlMs) && minTtlMs >= 1, `minTtlMs ${minTtlMs}`)
      assert.ok(Number.isSafeInteger(maxBatch) && maxBatch >= 1, `maxBatch ${maxBatch}`)
    })

    it('the driver states the push and the clock that are expected of it', async ({ drivers }) => {
      const { push, clock } = drivers.first.abilities
      assert.deepEqual({ push, clock }, { push: expects.push, clock: expects.clock })
    })

    it('two drivers of one kind state the same abilities', async ({ drivers }) => {
      assert.deepEqual(drivers.first.abilities, drivers.second.abilities)
      assert.equal(drivers.first.name, drivers.second.name)
    })

    it('a session can listen exactly if the driver states push', async ({ first }) => {
      assert.equal(typeof first.session.listen, expects.push ? 'function' : 'undefined')
    })
  })
}
