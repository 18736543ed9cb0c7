import type { Evidence, Violation } from './checkers/checker.ts'
import { excusedOverlapMs } from './checkers/exclusive-belief.ts'
import { type ExceptionKind, exceptionKinds } from './history/records.ts'
import type { TortureArguments } from './arguments.ts'

/** The last line of a run. */
export interface Summary {
  readonly driver: string
  readonly seed: number
  readonly seconds: number
  readonly nemesis: string
  readonly plant: string | null
  readonly violations: number
  /** Violations by checker; only those that found any. */
  readonly found: Readonly<Record<string, number>>
  /** After how many operations each of these found its first. */
  readonly foundAfter: Readonly<Record<string, number>>
  /** Acquires asked, leases given back, runs begun, requests to the resource. */
  readonly operations: number
  readonly grants: number
  readonly runs: number
  /** Grants after a holder that had not given the key back, and runs that were a later attempt. */
  readonly takeovers: number
  readonly losses: number
  readonly renewals: number
  /** Writes that the resource refused for their fence. */
  readonly refusedWrites: number
  /** Processes that ran, and those of them that were killed. */
  readonly processes: number
  readonly killed: number
  readonly faults: Readonly<Record<string, number>>
  /** For how long two held one key because of a named exception. */
  readonly overlapMs: Readonly<Record<ExceptionKind, number>>
}

export function summarize(
  { driver, seed, seconds, nemesis, plant }: TortureArguments,
  evidence: Evidence,
  violations: readonly Violation[],
  faults: Readonly<Record<string, number>>,
): Summary {
  const { history } = evidence
  const leases = history.holds.filter(({ run }) => run === null)
  const runs = history.holds.filter(({ run }) => run !== null)
  const ended = history.all('ended')
  const found: Record<string, number> = {}
  const foundAfter: Record<string, number> = {}
  const operations = operationTimes(evidence)
  for (const { checker, at } of violations) {
    found[checker] = (found[checker] ?? 0) + 1
    foundAfter[checker] ??= operations.filter((time) => time <= at).length
  }
  const overlap = excusedOverlapMs(evidence)
  return {
    driver,
    seed,
    seconds,
    nemesis: nemesis ?? 'all',
    plant,
    violations: violations.length,
    found,
    foundAfter,
    operations: operations.length,
    grants: leases.length,
    runs: runs.length,
    takeovers: countTakeovers(evidence) + runs.filter(({ run }) => (run?.attempt ?? 0) > 1).length,
    losses: history.all('lost').length,
    renewals: history.all('trusted').length,
    refusedWrites: history.all('resource').filter(({ verb, accepted }) => verb === 'write' && !accepted)
      .length,
    processes: history.all('begun').length,
    killed: ended.filter(({ cause }) => cause === 'killed').length,
    faults,
    overlapMs: Object.fromEntries(
      exceptionKinds.map((kind) => [kind, Math.round(overlap[kind])]),
    ) as Summary['overlapMs'],
  }
}

/** When each operation was: acquires asked, leases given back, runs begun, requests to the resource. */
function operationTimes({ history }: Evidence): readonly number[] {
  const runs = history.holds.filter(({ run }) => run !== null)
  return [
    ...[...history.all('asked'), ...history.all('given-back'), ...history.all('resource')].map(
      ({ at }) => at,
    ),
    ...runs.map(({ from }) => from),
  ]
}

function countTakeovers({ history }: Evidence): number {
  let takeovers = 0
  for (const holds of history.byName.values()) {
    for (const [index, hold] of holds.entries()) {
      const next = holds[index + 1]
      if (next !== undefined && hold.run === null && hold.letGoAt > next.from) takeovers++
    }
  }
  return takeovers
}

/** For people. */
export function describe(summary: Summary): string {
  const faults = Object.entries(summary.faults)
    .map(([kind, times]) => `${kind} ${times}`)
    .join(', ')
  const overlaps = exceptionKinds.map((kind) => `${kind} ${summary.overlapMs[kind]} ms`).join(', ')
  return [
    `${summary.driver}, seed ${summary.seed}, ${summary.seconds} s: ${summary.processes} processes, ${summary.killed} of them killed.`,
    `${summary.operations} operations, ${summary.grants} grants, ${summary.runs} runs, ${summary.takeovers} takeovers, ${summary.losses} losses, ${summary.refusedWrites} stale writes refused.`,
    `Faults: ${faults === '' ? 'none' : faults}.`,
    `Overlap by named exceptions: ${overlaps}.`,
    `${summary.violations} violations.`,
  ].join('\n')
}
