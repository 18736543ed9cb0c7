import { exactReasons } from './checkers/exact-reasons.ts'
import { exclusiveBelief } from './checkers/exclusive-belief.ts'
import { fencing } from './checkers/fencing.ts'
import { firedSlots } from './checkers/fired-slots.ts'
import { harmlessRelease } from './checkers/harmless-release.ts'
import { honestAnswers } from './checkers/honest-answers.ts'
import { knownLoss } from './checkers/known-loss.ts'
import { manualRuns } from './checkers/manual-runs.ts'
import { noLeak } from './checkers/no-leak.ts'
import { noOutage } from './checkers/no-outage.ts'
import { noSilentMiss } from './checkers/no-silent-miss.ts'
import { oncePerSlot } from './checkers/once-per-slot.ts'
import { runLimits } from './checkers/run-limits.ts'
import { steadyPace } from './checkers/steady-pace.ts'
import type { PromiseName, Violation } from './checkers/violation.ts'
import type { Entry } from './history.ts'
import type { Plan } from './plan.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  /** For how long two believed where a named exception explains it. */
  readonly overlapMs: number
  /** How often each promise was broken where a named exception explains it. */
  readonly excused: Excused
}

export type Excused = Readonly<Partial<Record<PromiseName, number>>>

/** Holds a history against every promise. */
export function check(plan: Plan, history: readonly Entry[]): Verdict {
  const { violations, overlapMs } = applyCheckers(plan, history)
  const isPlain = history.every(({ kind }) => kind !== 'exception')
  return { violations, overlapMs, excused: isPlain ? {} : excusedIn(plan, history, violations) }
}

/** What would be broken as well if the named exceptions in this history counted for nothing. */
function excusedIn(plan: Plan, history: readonly Entry[], violations: readonly Violation[]): Excused {
  const blind = history.filter(({ kind }) => kind !== 'exception')
  const excused: Partial<Record<PromiseName, number>> = {}
  for (const { promise } of applyCheckers(plan, blind).violations)
    excused[promise] = (excused[promise] ?? 0) + 1
  for (const { promise } of violations) excused[promise] = (excused[promise] ?? 0) - 1
  return excused
}

function applyCheckers(plan: Plan, history: readonly Entry[]): Pick<Verdict, 'violations' | 'overlapMs'> {
  const { violations, overlapMs } = exclusiveBelief(history)
  const policies = new Map(plan.tasks.map(({ name, onCrash }) => [name, onCrash]))
  return {
    violations: [
      ...violations,
      ...fencing(history),
      ...knownLoss(history),
      ...noOutage(history),
      ...oncePerSlot(history, policies),
      ...noSilentMiss(history, plan),
      ...exactReasons(history, plan),
      ...manualRuns(history, plan),
      ...runLimits(history, plan),
      ...steadyPace(history),
      ...firedSlots(history, plan),
      ...honestAnswers(history),
      ...harmlessRelease(history),
      ...noLeak(history),
    ],
    overlapMs,
  }
}
