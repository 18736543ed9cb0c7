import type { Attempt } from './acquisition.ts'

/**
 * Joins callers that ask for one key at once and will not wait. A key is at most once in the air, so a thousand of them
 * would be a thousand round trips one after the other; but whoever asks before a try has been sent can be told by its
 * outcome: the key is held, by another or by the caller whose try it was.
 *
 * A try that is in the air already says nothing to a newcomer: the key may have been released since the store looked.
 */
export class SharedTries {
  /** Tries that have not been sent. */
  readonly #unsent = new Map<string, Promise<Attempt>>()

  /**
   * @param group only callers with the same key, and the same patience, share a try
   * @param attempt makes a try, and calls back just before it is sent
   */
  async ask(group: string, attempt: (onSend: () => void) => Promise<Attempt>): Promise<Attempt> {
    const unsent = this.#unsent.get(group)
    if (unsent !== undefined) {
      const theirs = await unsent
      return theirs.kind === 'granted' ? { kind: 'held', remainingMs: theirs.lease.remainingMs } : theirs
    }
    const own = attempt(() => this.#forget(group, own))
    this.#unsent.set(group, own)
    try {
      return await own
    } finally {
      this.#forget(group, own)
    }
  }

  #forget(group: string, attempt: Promise<Attempt>): void {
    if (this.#unsent.get(group) === attempt) this.#unsent.delete(group)
  }
}
