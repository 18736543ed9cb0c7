import type { Entry } from '../history.ts'

export type PromiseName = 'G1' | 'G2' | 'G3' | 'G4' | 'G5' | 'G6' | 'G7' | 'G8' | 'G9'

/** A promise that was broken, as the history shows it. */
export interface Violation {
  readonly promise: PromiseName
  readonly at: number
  readonly what: string
}

/** Reads a history, and nothing else. */
export type Checker = (history: readonly Entry[]) => readonly Violation[]

/** The entries of one kind. */
export type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { kind: Kind }>
