import { randomBytes } from 'node:crypto'
import type { Driver, DriverAbilities } from '../../driver/index.ts'
import type { ContractBehaviour, ContractStore, RawStore, Requirement } from '../contract-subject.ts'
import { Actor } from './actor.ts'

/** What a behaviour plays on: a namespace of its own in the store, and two nodes that share it. */
export interface Stage {
  readonly namespace: string
  /** A node on the first connection. */
  readonly first: Actor
  /** Another node, on the second connection. */
  readonly second: Actor
  readonly drivers: { readonly first: Driver; readonly second: Driver }
  readonly abilities: DriverAbilities
  /** A ttl for leases that are meant to lapse while the behaviour watches. */
  readonly briefMs: number
  /** The store behind the driver. A behaviour uses only the parts that it requires. */
  readonly raw: Required<RawStore>
  readonly unreachable: Driver
  /** One more node, ended with the behaviour. Without a namespace it shares that of the stage. */
  enter(driver: 'first' | 'second', namespace?: string): Actor
}

/** Long enough for any lease that must not lapse while a behaviour runs. */
export const longMs = 60_000

type Play = (stage: Stage) => Promise<void>

/** Declares one behaviour; what it requires stands between its sentence and what it does. */
export type Declare = (name: string, ...rest: [Play] | [readonly Requirement[], Play]) => void

/** The behaviours of one part of the contract. */
export function group(title: string, declareAll: (it: Declare) => void): readonly ContractBehaviour[] {
  const behaviours: ContractBehaviour[] = []
  declareAll((name, ...rest) => {
    const [requires, play] = rest.length === 1 ? [[], rest[0]] : rest
    behaviours.push({ group: title, name, requires, run: (store) => playOn(store, play) })
  })
  return behaviours
}

async function playOn(store: ContractStore, play: Play): Promise<void> {
  const namespace = `contract-${randomBytes(8).toString('hex')}`
  const drivers = { first: store.first, second: store.second }
  const actors: Actor[] = []
  const enter: Stage['enter'] = (driver, other = namespace) => {
    const actor = new Actor(drivers[driver].open(other))
    actors.push(actor)
    return actor
  }
  const { abilities } = store.first
  try {
    await play({
      namespace,
      first: enter('first'),
      second: enter('second'),
      drivers,
      abilities,
      briefMs: Math.max(abilities.minTtlMs, 100),
      raw: store.raw as Required<RawStore>,
      unreachable: store.unreachable as Driver,
      enter,
    })
  } finally {
    await Promise.all(actors.map((actor) => actor.session.close()))
  }
}

/** `count` different keys that sort in another order than they come. */
export function someKeys(count: number, stem = 'key'): string[] {
  return Array.from({ length: count }, (_, index) => `${stem}-${(index * 7919) % 10_007}-${index}`)
}
