import { DriverFault } from '../../core/errors.ts'
import type { SqliteRow } from './clients.ts'

/**
 * The columns of a row, checked: what another program wrote there is an error of this one record, not a wrong fence.
 * Integers that do not fit into a JavaScript number come rounded from better-sqlite3, and are refused as well.
 */
export class Columns {
  readonly #row: SqliteRow
  readonly #of: string

  /** @param of what the row is of, for the error */
  constructor(row: SqliteRow, of: string) {
    this.#row = row
    this.#of = of
  }

  text(name: string): string {
    const value = this.#row[name]
    return typeof value === 'string' ? value : this.#refuse(name)
  }

  textOrNull(name: string): string | null {
    return this.#row[name] === null ? null : this.text(name)
  }

  whole(name: string): number {
    const value = this.#row[name]
    const number = typeof value === 'bigint' ? Number(value) : value
    return typeof number === 'number' && Number.isSafeInteger(number) ? number : this.#refuse(name)
  }

  wholeOrNull(name: string): number | null {
    return this.#row[name] === null ? null : this.whole(name)
  }

  /** A JSON array of strings. */
  texts(name: string): readonly string[] {
    try {
      const value: unknown = JSON.parse(this.text(name))
      if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    } catch {
      // As bad as another shape.
    }
    return this.#refuse(name)
  }

  #refuse(name: string): never {
    const value = String(this.#row[name]).slice(0, 40)
    throw new DriverFault(
      'bad-item',
      `The column ${name} of ${this.#of} holds what Leasehold did not write: ${value}. Delete the row.`,
    )
  }
}
