import { setImmediate as turn } from 'node:timers/promises'
import { DriverFault } from '../../src/core/errors.ts'
import type { Driver, DriverSession } from 'leasehold/driver'

/** The way of one process to the store: can be cut, as a crash does, and knows what is under way. */
export class CuttableLink {
  readonly driver: Driver
  #isCut = false
  #underWay = 0

  constructor(driver: Driver) {
    this.driver = { ...driver, open: (namespace) => this.#open(driver.open(namespace)) }
  }

  /** Nothing gets through any more. */
  cut(): void {
    this.#isCut = true
  }

  /** Resolves when everything that was sent is answered, and what followed from the answers as well. */
  async quiet(): Promise<void> {
    do {
      await turn()
      await turn()
    } while (this.#underWay > 0)
  }

  #open(session: DriverSession): DriverSession {
    const { locks, tasks, listen } = session
    return {
      locks: this.#guarded(locks),
      tasks: this.#guarded(tasks),
      listen: listen && ((listener) => this.#pass(() => listen(listener))),
      close: () => session.close(),
    }
  }

  #guarded<Verbs extends object>(verbs: Verbs): Verbs {
    return new Proxy(verbs, {
      get: (target, name) => {
        const verb: unknown = Reflect.get(target, name)
        if (typeof verb !== 'function') return verb
        return (...args: unknown[]) => this.#pass(() => Reflect.apply(verb, target, args) as Promise<unknown>)
      },
    })
  }

  async #pass<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    if (this.#isCut) throw new DriverFault('unusable', 'The process is dead.')
    this.#underWay++
    try {
      return await call()
    } finally {
      this.#underWay--
    }
  }
}
