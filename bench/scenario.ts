import type { Stores } from './stores.ts'

/** How long everything takes; tests make it short. */
export interface Pace {
  readonly rounds: number
  readonly roundMs: number
  /** Before the first round, per subject. */
  readonly warmUpMs: number
}

export const usualPace: Pace = { rounds: 5, roundMs: 400, warmUpMs: 1_000 }

/**
 * What a subject is to the others:
 *
 * - `ours`: compared with the best peer and with the raw one
 * - `peer`: what a user would take instead
 * - `raw`: what can be had at best without a library; one per scenario
 * - `other`: shown, and compared with nothing
 */
export type Role = 'ours' | 'peer' | 'raw' | 'other'

/** Named with its unit. */
export type Metric =
  | 'opsPerSecond'
  | 'gapMs'
  | 'gapMsP99'
  | 'commandsPerHandover'
  | 'commandsPerSecond'
  | 'commandsPerTenSeconds'
  | 'commandsPerTry'
  | 'commandsPerSlotAndNode'
  | 'cpuPercent'
  | 'eventLoopDelayMsP99'
  | 'eventLoopDelayMsMax'
  | 'leasesLost'
  | 'latenessMsP50'
  | 'latenessMsP99'
  | 'runsPerSlot'
  | 'importMs'
  | 'importMiB'
  | 'heapBytesPerLease'
  | 'tablePages'
  | 'hotUpdatesPercent'
  | 'storeMiB'
  | 'records'

/** One figure of one subject, as often as it was measured. */
export interface Finding {
  readonly subject: string
  readonly role: Role
  readonly metric: Metric
  readonly values: readonly number[]
}

export interface Scenario {
  readonly name: string
  /** One line, for the table's headings. */
  readonly what: string
  /** Runs only when it is asked for: it takes longer than the rest together. */
  readonly isExtra?: boolean
  run(stores: Stores, pace: Pace): Promise<Finding[]>
}
