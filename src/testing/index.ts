export type {
  ContractBehaviour,
  ContractExpectations,
  ContractStore,
  ContractSubject,
  RawAbility,
  RawStore,
  Requirement,
} from './contract-subject.ts'
export { driverContract, runDriverContract, type ContractRunner } from './driver-contract.ts'
export { seededRandom, type SeededRandom } from './seeded-random.ts'
