import type { Journal } from '../history/journal.ts'
import { linkFaults } from './link-faults.ts'
import { processFaults } from './process-faults.ts'
import type { Fault, PlaceFault, Scene, StoreFault } from './scene.ts'
import { operatorFaults, storeFaults } from './store-faults.ts'
import { fleetFaults, useFaults } from './use-faults.ts'

const placeFaults: readonly PlaceFault[] = [...processFaults, ...linkFaults, ...useFaults]
const wholeFaults: readonly StoreFault[] = [...storeFaults, ...operatorFaults, ...fleetFaults]

/** Groups of faults that can be asked for by one name, beside the kinds themselves. */
const groups: Readonly<Record<string, readonly Fault[]>> = {
  processes: processFaults,
  links: linkFaults,
  store: storeFaults,
  operator: operatorFaults,
  use: [...useFaults, ...fleetFaults],
}

/** Conditions that hold all the time instead of striking. */
const conditions: readonly string[] = ['none', 'same-identity', 'wrong-clocks']

export const nemesisNames: readonly string[] = [
  ...conditions,
  ...Object.keys(groups),
  ...[...placeFaults, ...wholeFaults].map(({ kind }) => kind),
]

/** Strikes at random until it is over: three places at most at a time, and the store as a whole every now and then. */
export class Nemesis {
  readonly faults: Record<string, number> = {}
  readonly #scene: Scene
  readonly #journal: Journal
  readonly #wanted: readonly Fault[]

  /** @param name a kind, a group, or null for all of them */
  constructor(scene: Scene, journal: Journal, name: string | null) {
    this.#scene = scene
    this.#journal = journal
    const all: readonly Fault[] = [...placeFaults, ...wholeFaults]
    const named = name === null ? all : (groups[name] ?? all.filter(({ kind }) => kind === name))
    this.#wanted = named.filter(
      ({ drivers }) => drivers === undefined || drivers.includes(scene.store.driver),
    )
    if (name !== null && !conditions.includes(name) && this.#wanted.length === 0) {
      throw new Error(`${name} cannot be done to ${scene.store.driver}.`)
    }
  }

  /** Resolves when the last fault has ended. */
  async run(): Promise<void> {
    await Promise.all([
      this.#hand(() => this.#strikePlace(), 250),
      this.#hand(() => this.#strikePlace(), 400),
      this.#hand(() => this.#strikePlace(), 800),
      this.#hand(() => this.#strikeStore(), this.#wanted.length > 1 ? 3_000 : 400),
    ])
  }

  async #hand(strike: () => Promise<void>, pauseMs: number): Promise<void> {
    const { random, over, wait } = this.#scene
    while (!over.aborted) {
      await wait(50 + random.integer(2 * pauseMs))
      if (!over.aborted) await strike()
    }
  }

  async #strikePlace(): Promise<void> {
    const fault = this.#pick(placeFaults)
    const free = this.#scene.fleet.places.filter(
      (candidate) => !candidate.busy && fault?.suits?.(candidate) !== false,
    )
    const place = free[this.#scene.random.integer(free.length)]
    if (fault === undefined || place === undefined) return
    place.busy = true
    await this.#witnessed(fault.kind, () => fault.strike(this.#scene, place), place.index)
    place.busy = false
  }

  async #strikeStore(): Promise<void> {
    const fault = this.#pick(wholeFaults)
    if (fault !== undefined) await this.#witnessed(fault.kind, () => fault.strike(this.#scene))
  }

  #pick<Kind extends Fault>(faults: readonly Kind[]): Kind | undefined {
    const tickets = faults
      .filter((fault) => this.#wanted.includes(fault))
      .flatMap((fault) => Array.from({ length: fault.weight ?? 1 }, () => fault))
    return tickets.length === 0 ? undefined : this.#scene.random.pick(tickets)
  }

  async #witnessed(kind: string, strike: () => Promise<void>, place?: number): Promise<void> {
    const where = place === undefined ? {} : { place }
    this.#journal.write({ is: 'fault', kind, phase: 'begin', ...where })
    try {
      await strike()
      this.faults[kind] = (this.faults[kind] ?? 0) + 1
    } catch (error) {
      // Two faults at once can be too much for the one: the store it works on is away.
      console.error(`${kind} did not work: ${String(error)}`)
    }
    this.#journal.write({ is: 'fault', kind, phase: 'end', ...where })
  }
}
