import type { RunHistoryEntry } from 'leasehold'
import type { History } from '../history/read-history.ts'

export interface Violation {
  readonly checker: string
  readonly what: string
  /** Milliseconds since boot, to find it in the history. */
  readonly at: number
}

/** What the checkers judge. */
export interface Evidence {
  readonly history: History
  readonly ttlMs: number
  readonly requestTimeoutMs: number
  /** The store is a file, in whose way every process can be. */
  readonly isFile: boolean
  /** What the store says about each task, the latest first. */
  readonly tasks: ReadonlyMap<string, readonly RunHistoryEntry[]>
  /** Until when all workers worked, on the host's wall clock, and what lies between it and the clock since boot. */
  readonly workedUntil: number
  readonly wallMinusBoot: number
}

/** Reads the evidence and knows nothing of how the library works. */
export type Checker = (evidence: Evidence) => readonly Violation[]
