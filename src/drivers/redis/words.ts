import type { Reply } from './scripts.ts'

/** Reads an answer of a script: one letter for its kind, then numbers, then perhaps a text to the end. */
export class Words {
  readonly kind: string
  readonly #text: string
  #at = 2

  constructor(reply: Reply | undefined) {
    this.#text = typeof reply === 'string' ? reply : 'f the script gave no answer'
    this.kind = this.#text.charAt(0)
  }

  /** The next word as a number. Exact: scripts write integers digit by digit. */
  number(): number {
    const end = this.#text.indexOf(' ', this.#at)
    const word = end === -1 ? this.#text.slice(this.#at) : this.#text.slice(this.#at, end)
    this.#at += word.length + 1
    return Number(word)
  }

  /** The next word, microseconds, as milliseconds. */
  millis(): number {
    return this.number() / 1000
  }

  /** All that follows. */
  rest(): string {
    return this.#text.slice(this.#at)
  }
}

/** Milliseconds as a script takes them: whole microseconds, so few that they and the clock stay exact. */
export function toMicros(ms: number): string {
  return String(Math.min(Math.ceil(ms * 1000), 2 ** 52))
}

/** A key prefix, which clients take as text or as bytes. */
export function textOf(prefix: string | Uint8Array | undefined): string {
  if (prefix === undefined || typeof prefix === 'string') return prefix ?? ''
  return Buffer.from(prefix).toString()
}
