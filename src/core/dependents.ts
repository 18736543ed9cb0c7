import { ClosedError } from './errors.ts'

/** Something that stands on a `LockService` and must end before it. */
export interface Dependent {
  /** Ends it. Idempotent, never rejects. */
  close(): Promise<void>
}

/** What a closing service closes first: a scheduler whose store is taken away would go on asking for it for ever. */
export class Dependents {
  readonly #dependents = new Set<Dependent>()
  #isClosed = false

  /** @throws ClosedError if the service was closed */
  add(dependent: Dependent): void {
    if (this.#isClosed) throw new ClosedError('The LockService below was closed. Make a new one.')
    this.#dependents.add(dependent)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#dependents].map((dependent) => dependent.close()))
    this.#dependents.clear()
  }
}
