import { closeSync, openSync, writeSync } from 'node:fs'
import { type Fact, now } from './records.ts'

/**
 * Writes a history of one process as JSON lines. Each line is with the kernel before `write` returns, so that SIGKILL
 * loses none.
 */
export class Journal {
  readonly #by: string
  readonly #file: number

  constructor(path: string, by: string) {
    this.#by = by
    this.#file = openSync(path, 'a')
  }

  write(fact: Fact, at: number = now()): void {
    writeSync(this.#file, `${JSON.stringify({ at, by: this.#by, ...fact })}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}
