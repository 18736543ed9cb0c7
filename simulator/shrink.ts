import type { PromiseName } from './checkers/violation.ts'
import type { Plan } from './plan.ts'
import type { SystemUnderTrial } from './simulate.ts'
import { breaks, type Trial, tryPlan } from './trial.ts'

/** So many plans are tried at most. */
const budget = 500

/**
 * Cuts a plan down for as long as it breaks the same promise: without some of its nodes, tasks, deeds and faults, and with
 * clocks and network as plain as can be.
 */
export async function shrink(trial: Trial, system: SystemUnderTrial = {}): Promise<Trial> {
  const promises = new Set<PromiseName>(trial.violations.slice(0, 1).map(({ promise }) => promise))
  let best = trial.plan
  let left = budget
  const tries = async (candidate: Plan): Promise<boolean> => {
    if (left-- <= 0 || !(await breaks(candidate, promises, system))) return false
    best = candidate
    return true
  }
  for (let sizeBefore = Infinity; sizeOf(best) < sizeBefore && left > 0;) {
    sizeBefore = sizeOf(best)
    for (const { name } of best.nodes) if (best.nodes.length > 1) await tries(withoutNode(best, name))
    for (const { name } of best.tasks)
      await tries({ ...best, tasks: best.tasks.filter((task) => task.name !== name) })
    await thin(best.deeds, (deeds) => tries({ ...best, deeds }))
    await thin(best.faults, (faults) => tries({ ...best, faults }))
    await simplify(() => best, tries)
  }
  return tryPlan(best, system)
}

function sizeOf({ nodes, tasks, deeds, faults }: Plan): number {
  return nodes.length + tasks.length + deeds.length + faults.length
}

function withoutNode(plan: Plan, name: string): Plan {
  return {
    ...plan,
    nodes: plan.nodes.filter((node) => node.name !== name),
    deeds: plan.deeds.filter(({ node }) => node !== name),
    faults: plan.faults.filter(({ node }) => node !== name),
  }
}

/** Leaves out halves, then quarters, and so on down to single items. */
async function thin<Item>(
  items: readonly Item[],
  tries: (left: readonly Item[]) => Promise<boolean>,
): Promise<void> {
  let kept = items
  for (let size = Math.max(1, kept.length); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < kept.length;) {
      const fewer = [...kept.slice(0, start), ...kept.slice(start + size)]
      if (await tries(fewer)) kept = fewer
      else start += size
    }
  }
}

async function simplify(best: () => Plan, tries: (plan: Plan) => Promise<boolean>): Promise<void> {
  for (const { name } of best().nodes) {
    const plain = { rate: 1, wallOffsetMs: 0, timersLateMs: 0, lagMs: 1, isDeadInTheEnd: false }
    for (const [quality, value] of Object.entries(plain)) {
      const nodes = best().nodes.map((node) => (node.name === name ? { ...node, [quality]: value } : node))
      if (JSON.stringify(nodes) !== JSON.stringify(best().nodes)) await tries({ ...best(), nodes })
    }
  }
  if (best().push) await tries({ ...best(), push: false })
  if (best().maxBatch < 1_000) await tries({ ...best(), maxBatch: 1_000 })
}
