import { seededRandom, type SeededRandom } from '../src/testing/seeded-random.ts'
import type { Deed, FiredPlan, Plan, TaskPlan } from './plan.ts'

/** Seeds of another stream than that of the plan: what is drawn here changes nothing of what is drawn there. */
const streamOffset = 7_000_000_000

/**
 * Gives half of the plans with tasks the other policies, operators who trigger and backfill, and a task that something
 * else fires. The nodes, leases, mishaps and faults stay what they are without.
 */
export function withPolicies(plan: Plan): Plan {
  const random = seededRandom(plan.seed + streamOffset)
  if (plan.tasks.length === 0 || random.next() < 0.5) return plan
  const lock = random.next() < 0.35 ? random.pick(['a', 'ledger']) : null
  const tasks = plan.tasks.map((task) => drawPolicies(random, task, lock))
  const fired = random.next() < 0.35 ? drawFired(random) : null
  const orders = drawOrders(random, plan, tasks)
  const fires = fired === null ? [] : drawFires(random, plan, fired)
  const deeds = [...plan.deeds, ...orders, ...fires].toSorted((one, other) => one.at - other.at)
  return { ...plan, tasks, fired, deeds }
}

function drawPolicies(random: SeededRandom, task: TaskPlan, lock: string | null): TaskPlan {
  const chance = (share: number): boolean => random.next() < share
  const overlap = random.pick(['skip', 'queue', 'queue', 'cancel'] as const)
  const isAll = overlap === 'queue' && chance(0.5)
  const catchUp = isAll ? 'all' : task.catchUp
  return {
    ...task,
    overlap,
    catchUp,
    catchUpWindowMs: catchUp !== 'none' && chance(0.5) ? random.pick([1_200, 4_000]) : null,
    catchUpMax: random.pick([1, 2, 3, 100]),
    timeoutMs: chance(0.4) ? random.pick([200, 700, 1_500]) : null,
    jitterMs: chance(0.3) ? random.pick([200, 900, 5_000]) : 0,
    lock: chance(0.8) ? lock : null,
    lockWaitMs: random.pick([0, 300, 2_000]),
    workMs: chance(0.3) ? [...task.workMs.slice(1), 5_500] : task.workMs,
  }
}

function drawOrders(random: SeededRandom, { nodes, endsAt }: Plan, tasks: readonly TaskPlan[]): Deed[] {
  const ids = Array.from({ length: 1 + random.integer(4) }, (_, index) => `order-${index}`)
  return ids.flatMap((requestId) => {
    const task = random.pick(tasks).name
    const from = random.integer(endsAt)
    const isRange = random.next() < 0.4
    // Sometimes two ask for the same, or one asks again.
    const times = random.next() < 0.25 ? 2 : 1
    return Array.from({ length: times }, (): Deed => {
      const where = {
        at: isRange ? from + random.integer(endsAt - from) : from,
        node: random.pick(nodes).name,
      }
      if (!isRange) return { ...where, kind: 'trigger', task, requestId }
      return { ...where, kind: 'backfill', task, requestId, from, to: from + 3_000 }
    })
  })
}

function drawFired(random: SeededRandom): FiredPlan {
  return {
    name: 'fired',
    everyMs: random.pick([500, 1_000]),
    ttlMs: random.pick([300, 1_500]),
    startDeadlineMs: random.pick([0, 1_000, 5_000]),
    workMs: random.pick([1, 50, 300, 1_400]),
  }
}

/** Most nodes are fired at each slot, a little early or late. */
function drawFires(random: SeededRandom, { nodes, endsAt }: Plan, { everyMs }: FiredPlan): Deed[] {
  const deeds: Deed[] = []
  const lateMs = random.pick([10, 300, 1_500])
  for (let slot = everyMs; slot < endsAt; slot += everyMs) {
    for (const { name: node } of nodes) {
      if (random.next() < 0.2) continue
      const at = Math.max(0, slot + random.integer(lateMs) - (random.next() < 0.3 ? 100 : 0))
      if (at < endsAt) deeds.push({ at, node, kind: 'fire', slot })
    }
  }
  return deeds
}
