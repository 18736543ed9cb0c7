/** What a service has begun and must see the end of before it is closed. */
export class PendingWork {
  readonly #work = new Set<Promise<unknown>>()
  #isWindingUp = false

  /** The service is being closed: nothing is begun any more that nobody waits for. */
  get isWindingUp(): boolean {
    return this.#isWindingUp
  }

  windUp(): void {
    this.#isWindingUp = true
  }

  /** Notes a promise until it settles, and gives it back. */
  track<Value>(work: Promise<Value>): Promise<Value> {
    const forget = (): void => {
      this.#work.delete(work)
    }
    this.#work.add(work)
    work.then(forget, forget)
    return work
  }

  /** Resolves when nothing is pending any more, what was begun meanwhile included. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.allSettled(this.#work)
  }
}
