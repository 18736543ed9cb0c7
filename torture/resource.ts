import type { Journal } from './history/journal.ts'
import type { ResourceRequest } from './worker/messages.ts'

/**
 * A resource that does what `docs/locks.md` asks of one: it refuses whoever comes with a lower fence than it has seen, be
 * it to read or to write.
 */
export class FencedResource {
  readonly #journal: Journal
  /** False in one of the planted bugs. */
  readonly #compares: boolean
  readonly #records = new Map<string, { fence: number; value: number }>()

  constructor(journal: Journal, compares: boolean) {
    this.#journal = journal
    this.#compares = compares
  }

  serve({ verb, of, fence, value }: ResourceRequest): { accepted: boolean; value: number } {
    const record = this.#records.get(of) ?? { fence: 0, value: 0 }
    const accepted = fence >= record.fence || !this.#compares
    if (accepted) {
      record.fence = fence
      if (verb === 'write') record.value = value
      this.#records.set(of, record)
    }
    this.#journal.write({ is: 'resource', verb, of, fence, value: record.value, accepted })
    return { accepted, value: record.value }
  }
}
