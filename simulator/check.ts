import { exclusiveBelief } from './checkers/exclusive-belief.ts'
import { fencing } from './checkers/fencing.ts'
import { harmlessRelease } from './checkers/harmless-release.ts'
import { honestAnswers } from './checkers/honest-answers.ts'
import { knownLoss } from './checkers/known-loss.ts'
import { noLeak } from './checkers/no-leak.ts'
import { noOutage } from './checkers/no-outage.ts'
import { noSilentMiss } from './checkers/no-silent-miss.ts'
import { oncePerSlot } from './checkers/once-per-slot.ts'
import type { Violation } from './checkers/violation.ts'
import type { Entry } from './history.ts'
import type { Plan } from './plan.ts'

export interface Verdict {
  readonly violations: readonly Violation[]
  /** For how long two believed where a named exception explains it. */
  readonly overlapMs: number
}

/** Holds a history against every promise. */
export function check(plan: Plan, history: readonly Entry[]): Verdict {
  const { violations, overlapMs } = exclusiveBelief(history)
  const policies = new Map(plan.tasks.map(({ name, onCrash }) => [name, onCrash]))
  return {
    violations: [
      ...violations,
      ...fencing(history),
      ...knownLoss(history),
      ...noOutage(history),
      ...oncePerSlot(history, policies),
      ...noSilentMiss(history),
      ...honestAnswers(history),
      ...harmlessRelease(history),
      ...noLeak(history),
    ],
    overlapMs,
  }
}
