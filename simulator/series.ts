import type { Excused } from './check.ts'
import type { PromiseName, Violation } from './checkers/violation.ts'
import { drawPlan } from './draw-plan.ts'
import { type Meeting, faultsMet, meetingNames } from './faults-met.ts'
import { type Trial, tryPlan } from './trial.ts'

/** What one seed came to. */
export interface SeedResult {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly overlapMs: number
  readonly excused: Excused
  readonly met: readonly Meeting[]
  /** It went round in circles, and was given up. */
  readonly isStuck?: boolean
}

export async function runSeed(seed: number): Promise<SeedResult> {
  return resultOf(await tryPlan(drawPlan(seed)))
}

export function resultOf({ plan, history, violations, overlapMs, excused }: Trial): SeedResult {
  return { seed: plan.seed, violations, overlapMs, excused, met: faultsMet(plan, history) }
}

/** One line of figures for a series of seeds. */
export interface Summary {
  readonly violations: number
  readonly seeds: number
  readonly firstSeed: number
  readonly runsPerSecond: number
  /** For how long two believed where a named exception explains it, in all runs together. */
  readonly overlapMs: number
  /** How often each promise was broken where a named exception explains it. */
  readonly excused: Excused
  readonly failedSeeds: readonly number[]
  /** The share of runs that met this. */
  readonly met: Readonly<Record<Meeting, number>>
}

/** Adds up the results of seeds. */
export function summarize(
  results: readonly SeedResult[],
  { firstSeed, seconds }: { readonly firstSeed: number; readonly seconds: number },
): Summary {
  const failed = results.filter(({ violations }) => violations.length > 0)
  const excused: Partial<Record<PromiseName, number>> = {}
  for (const result of results)
    for (const [promise, count] of Object.entries(result.excused) as [PromiseName, number][])
      excused[promise] = (excused[promise] ?? 0) + count
  const share = (name: Meeting): number => {
    const count = results.filter(({ met }) => met.includes(name)).length
    return Number((count / results.length).toFixed(4))
  }
  return {
    violations: failed.reduce((sum, { violations }) => sum + violations.length, 0),
    seeds: results.length,
    firstSeed,
    runsPerSecond: Number((results.length / seconds).toFixed(1)),
    overlapMs: Math.round(results.reduce((sum, { overlapMs }) => sum + overlapMs, 0)),
    excused,
    failedSeeds: failed.map(({ seed }) => seed).toSorted((one, other) => one - other),
    met: Object.fromEntries(meetingNames.map((name) => [name, share(name)])) as Record<Meeting, number>,
  }
}
