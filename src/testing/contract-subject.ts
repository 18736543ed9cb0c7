import type { Driver, DriverAbilities } from '../driver/index.ts'

/** A driver on trial: how to reach its store, and what it says it can do. */
export interface ContractSubject {
  /** For the report, for example `'redis with ioredis 6'`. */
  readonly name: string
  readonly expects: ContractExpectations
  /** Opens the store once for a whole run of the suite. */
  open(): Promise<ContractStore>
}

/**
 * What the driver is meant to be able to do. Decides which behaviours apply, and is compared with the abilities that
 * the driver states: a driver that quietly lost an ability fails instead of being tested less.
 */
export interface ContractExpectations {
  readonly push: DriverAbilities['push']
  readonly clock: DriverAbilities['clock']
  /** True where free records stay until `purge` deletes them; false where the store forgets by itself. */
  readonly keepsFreeRecords: boolean
  /** The ways in which {@link ContractStore.raw} can look behind the driver. */
  readonly raw: readonly RawAbility[]
  /** Whether {@link ContractStore.unreachable} is there. */
  readonly unreachable: boolean
}

/** The opened store: two independent ways in, as two processes would have. */
export interface ContractStore {
  /** A driver on a client or connection of its own. */
  readonly first: Driver
  /** Another, on another client or connection to the same store. */
  readonly second: Driver
  /** A driver of the same kind whose store cannot be reached. */
  readonly unreachable?: Driver | undefined
  readonly raw?: RawStore | undefined
  /** Ends the connections and whatever else `open` made. */
  close(): Promise<void>
}

/**
 * The store itself, seen by an independent client, so that behaviours need not take the driver's word. Every part is
 * optional; what is there is named in {@link ContractExpectations.raw}. Keys, tasks and namespaces are stored forms.
 */
export interface RawStore {
  /** Deletes the record of a plain key, as an operator or a loss of data would. */
  forgetKey?(namespace: string, key: string): Promise<void>
  /** Deletes the record of a task, not its log. */
  forgetTask?(namespace: string, task: string): Promise<void>
  /** The fence in the record of a plain key as exact decimal digits, `null` if there is no record. */
  readFence?(namespace: string, key: string): Promise<string | null>
  /** Sets the fence in the existing record of a plain key. */
  writeFence?(namespace: string, key: string, fence: number): Promise<void>
  /** How many records of plain keys the namespace has, held or free. */
  countKeys?(namespace: string): Promise<number>
  /** Puts something into the place of a plain key that no driver wrote, such as a value of another type. */
  plantForeign?(namespace: string, key: string): Promise<void>
  /** Locks the existing record of a plain key, as a foreign transaction would, until the answered function is called. */
  lockKey?(namespace: string, key: string): Promise<() => Promise<void>>
  /** The same for the existing record of a task. */
  lockTask?(namespace: string, task: string): Promise<() => Promise<void>>
  /**
   * Does to the store and to the connections of both drivers what they have to survive: drops cached scripts, changes
   * the schema beside theirs, cuts idle connections, those that listen among them.
   */
  disturb?(): Promise<void>
}

export type RawAbility = keyof RawStore

/** What a behaviour needs of its subject. */
export type Requirement =
  | 'push'
  | 'no push'
  | 'server clock'
  | 'keeps free records'
  | 'unreachable'
  | `raw ${RawAbility}`

/** One sentence of the contract, and how to find out whether it holds. */
export interface ContractBehaviour {
  /** The part of the contract, for example `'locks: granting'`. */
  readonly group: string
  /** A sentence, unique within its group. */
  readonly name: string
  /** All of these must be met for the behaviour to apply. */
  readonly requires: readonly Requirement[]
  /** Rejects with an assertion error if the behaviour is not as it should be. Works in a namespace of its own. */
  run(store: ContractStore): Promise<void>
}

/** Whether a behaviour applies to a subject of which this is expected. */
export function meets(expects: ContractExpectations, requirement: Requirement): boolean {
  switch (requirement) {
    case 'push':
      return expects.push
    case 'no push':
      return !expects.push
    case 'server clock':
      return expects.clock === 'server'
    case 'keeps free records':
      return expects.keepsFreeRecords
    case 'unreachable':
      return expects.unreachable
    default:
      return expects.raw.some((ability) => requirement === `raw ${ability}`)
  }
}
