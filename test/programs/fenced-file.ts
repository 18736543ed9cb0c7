import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

/** What a {@link FencedFile} holds. */
export interface FencedValue {
  readonly fence: number
  readonly value: number
}

/** A resource that does what `docs/locks.md` asks of one: it refuses a write whose fence is lower than one it has seen. */
export class FencedFile {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  read(): FencedValue {
    try {
      return JSON.parse(readFileSync(this.#path, 'utf8')) as FencedValue
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { fence: 0, value: 0 }
      throw error
    }
  }

  /** @returns whether the write was accepted */
  write(fence: number, value: number): boolean {
    return this.#alone(() => {
      if (fence < this.read().fence) return false
      writeFileSync(this.#path, JSON.stringify({ fence, value }))
      return true
    })
  }

  /** Compares and writes as one step, for all processes: a resource has to do that by itself. */
  #alone<Result>(body: () => Result): Result {
    const latch = `${this.#path}.latch`
    for (;;) {
      try {
        closeSync(openSync(latch, 'wx'))
        break
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
      }
    }
    try {
      return body()
    } finally {
      rmSync(latch)
    }
  }
}
