/** How many keys are remembered; a service that cycles more of them forgets the one it saw longest ago. */
const capacity = 4_096

/** Remembers the greatest fence seen of each key, to notice a store that went back: restored, failed over, tampered with. */
export class FenceLedger {
  readonly #last = new Map<string, number>()

  /** Notes a fence; false if it is not a safe integer greater than the last one of this key. */
  accept(key: string, fence: number): boolean {
    const last = this.#last.get(key)
    if (!Number.isSafeInteger(fence) || fence < 0 || (last !== undefined && fence <= last)) return false
    this.#last.delete(key)
    this.#last.set(key, fence)
    if (this.#last.size > capacity) {
      const [oldest] = this.#last.keys()
      if (oldest !== undefined) this.#last.delete(oldest)
    }
    return true
  }
}
