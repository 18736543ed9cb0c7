import type { Violation } from './checkers/violation.ts'
import { drawPlan } from './draw-plan.ts'
import { type Meeting, faultsMet } from './faults-met.ts'
import { tryPlan } from './trial.ts'

/** What one seed came to. */
export interface SeedResult {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly overlapMs: number
  readonly met: readonly Meeting[]
  /** It went round in circles, and was given up. */
  readonly isStuck?: boolean
}

export async function runSeed(seed: number): Promise<SeedResult> {
  const { plan, history, violations, overlapMs } = await tryPlan(drawPlan(seed))
  return { seed, violations, overlapMs, met: faultsMet(plan, history) }
}

/** One line of figures for a series of seeds. */
export interface Summary {
  readonly violations: number
  readonly seeds: number
  readonly firstSeed: number
  readonly runsPerSecond: number
  /** For how long two believed where a named exception explains it, in all runs together. */
  readonly overlapMs: number
  readonly failedSeeds: readonly number[]
  /** The share of runs that met this. */
  readonly met: Readonly<Record<Meeting, number>>
}
