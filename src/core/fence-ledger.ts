/** So many keys are remembered at least, and twice as many at most: those that were seen last. */
const capacity = 4_096

/** Remembers the greatest fence seen of each key, to notice a store that went back: restored, failed over, tampered with. */
export class FenceLedger {
  #recent = new Map<string, number>()
  #older: ReadonlyMap<string, number> = new Map()

  /** Notes a fence; false if it is not a safe integer greater than the last one of this key. */
  accept(key: string, fence: number): boolean {
    const last = this.#recent.get(key) ?? this.#older.get(key)
    if (!Number.isSafeInteger(fence) || fence < 0 || (last !== undefined && fence <= last)) return false
    this.#recent.set(key, fence)
    if (this.#recent.size >= capacity) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    return true
  }
}
