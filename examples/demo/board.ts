import { lateIndex, lateMs } from './messages.ts'

const width = 16

/** What happened in one slot, by place. */
interface Row {
  readonly cells: Map<number, string>
  unprotected: number
}

/** The live table: one line per slot, one column per pod. */
export class Board {
  readonly #rows = new Map<number, Row>()
  readonly #write: (line: string) => void

  constructor(write: (line: string) => void) {
    this.#write = write
  }

  header(names: readonly string[]): void {
    const columns = names.map((name, place) => fit(place === lateIndex ? `${name} +${lateMs} ms` : name))
    this.#write(`${fit('slot')}${columns.join('')}unprotected`)
    this.#write('─'.repeat(width * (names.length + 1) + 11))
  }

  note(line: string): void {
    this.#write(`  ${line}`)
  }

  mark(slot: number, place: number, text: string): void {
    this.#row(slot).cells.set(place, text)
  }

  unprotected(slot: number): void {
    this.#row(slot).unprotected++
  }

  /** Prints the slots that are over, in order. */
  printUntil(now: number): void {
    for (const [slot, row] of [...this.#rows].toSorted(([a], [b]) => a - b)) {
      if (slot > now) return
      const cells = [0, 1, 2].map((place) => fit(row.cells.get(place) ?? '·'))
      const time = new Date(slot).toISOString().slice(11, 19)
      this.#write(`${fit(time)}${cells.join('')}${row.unprotected === 0 ? '' : `ran ${row.unprotected}×`}`)
      this.#rows.delete(slot)
    }
  }

  #row(slot: number): Row {
    let row = this.#rows.get(slot)
    if (row === undefined) this.#rows.set(slot, (row = { cells: new Map(), unprotected: 0 }))
    return row
  }
}

function fit(text: string): string {
  return text.padEnd(width)
}
