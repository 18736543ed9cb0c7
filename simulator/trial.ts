import { check, type Verdict } from './check.ts'
import type { PromiseName } from './checkers/violation.ts'
import type { Entry } from './history.ts'
import type { Plan } from './plan.ts'
import { simulate, type SystemUnderTrial } from './simulate.ts'

export interface Trial extends Verdict {
  readonly plan: Plan
  readonly history: readonly Entry[]
}

/** Plays a plan and holds what happened against every promise. */
export async function tryPlan(plan: Plan, system: SystemUnderTrial = {}): Promise<Trial> {
  const history = await simulate(plan, system)
  return { plan, history, ...check(plan, history) }
}

/** Whether playing the plan breaks one of these promises. */
export async function breaks(
  plan: Plan,
  promises: ReadonlySet<PromiseName>,
  system: SystemUnderTrial,
): Promise<boolean> {
  const { violations } = await tryPlan(plan, system)
  return violations.some(({ promise }) => promises.has(promise))
}
