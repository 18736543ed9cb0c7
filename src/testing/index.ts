export type {
  ContractBehaviour,
  ContractExpectations,
  ContractStore,
  ContractSubject,
  RawAbility,
  RawStore,
  Requirement,
} from './contract-subject.ts'
export {
  driverContract,
  runDriverContract,
  type ContractRunner,
  type DriverContractOptions,
} from './driver-contract.ts'
export { FakeClock, type FakeClockOptions, type PendingTimer } from './fake-clock.ts'
export {
  faultyDriver,
  type FaultPlan,
  type Faults,
  type FaultyDriver,
  type FaultyVerb,
  type HeldCall,
} from './faulty-driver.ts'
export { seededRandom, type SeededRandom } from './seeded-random.ts'
export { TestFleet, type TestFailure, type TestFleetOptions } from './test-fleet.ts'
export type { TestNode, TestNodeOptions } from './test-node.ts'
