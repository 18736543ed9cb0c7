import { seededRandom, type SeededRandom } from '../src/testing/seeded-random.ts'
import { withPolicies } from './draw-policies.ts'
import {
  type AcquireDeed,
  type CallFault,
  type Deed,
  faultKinds,
  type NamedException,
  type NodePlan,
  type Plan,
  type TaskPlan,
} from './plan.ts'

export const lockKeys = ['a', 'b'] as const
const ttls = [250, 400, 800, 1_500, 3_000] as const
export const longestTtlMs = 3_000
/** The longest that a fault delays a call or an answer: longer than most leases last. */
export const longestDelayMs = 2_500
const longestStepMs = 4_000

/** The same seed, the same plan. */
export function drawPlan(seed: number): Plan {
  const random = seededRandom(seed)
  const endsAt = 2_000 + random.integer(4_000)
  const nodes = Array.from({ length: 2 + random.integer(3) }, (_, index) => drawNode(random, index))
  const tasks = random
    .pick([[], [], ['tick'], ['tick'], ['tick', 'tock']])
    .map((name) => drawTask(random, name))
  const deeds = drawDeeds(random, { nodes, tasks, endsAt })
  const faults = drawFaults(random, nodes)
  const plain: Plan = {
    seed,
    push: random.next() < 0.6,
    maxBatch: random.pick([1, 2, 1_000]),
    nodes,
    tasks,
    fired: null,
    deeds,
    faults,
    endsAt,
  }
  return withPolicies(plain)
}

function drawNode(random: SeededRandom, index: number): NodePlan {
  return {
    name: `n${index + 1}`,
    wallOffsetMs: random.integer(7_200_000) - 3_600_000,
    // A clock that runs fast errs on the safe side; a slow one may be off by the margin.
    rate: random.pick([1, 1, 1, 0.9925, 1.007, 1.2]),
    lagMs: random.pick([0, 1, 1, 4, 12, 40]),
    timersLateMs: random.pick([0, 0, 0, 0, 3, 300]),
    // The first node lives.
    isDeadInTheEnd: index > 0 && random.next() < 0.3,
  }
}

function drawTask(random: SeededRandom, name: string): TaskPlan {
  const everyMs = random.pick([500, 1_000, 2_000])
  return {
    name,
    everyMs,
    editedEveryMs: everyMs * 1.5,
    ttlMs: random.pick([300, 700, 1_500]),
    onCrash: random.pick(['skip', 'retry']),
    catchUp: random.pick(['none', 'latest']),
    catchUpWindowMs: null,
    catchUpMax: 100,
    startDeadlineMs: random.pick([200, 60_000]),
    overlap: 'skip',
    timeoutMs: null,
    jitterMs: 0,
    lock: null,
    lockWaitMs: 0,
    workMs: Array.from({ length: 4 }, () => random.pick([1, 5, 50, 300, 900, 2_600])),
  }
}

interface Scene {
  readonly nodes: readonly NodePlan[]
  readonly tasks: readonly TaskPlan[]
  readonly endsAt: number
}

function drawDeeds(random: SeededRandom, { nodes, tasks, endsAt }: Scene): readonly Deed[] {
  const deeds: Deed[] = []
  const isPortable = new Set(nodes.map(({ name }) => name).filter(() => random.next() < 0.5))
  const acquires = 4 + random.integer(16)
  const mishaps = random.integer(7)
  for (let count = 0; count < acquires; count++)
    deeds.push({ ...anywhere(random, nodes, endsAt), kind: 'acquire', ...drawAcquire(random) })
  for (let count = 0; count < mishaps; count++) {
    const where = anywhere(random, nodes, endsAt)
    deeds.push(drawMishap(random, where, tasks, isPortable.has(where.node)))
  }
  if (random.next() < 0.15) {
    const exceptions = 1 + random.integer(3)
    for (let count = 0; count < exceptions; count++)
      deeds.push({ ...anywhere(random, nodes, endsAt), kind: 'exception', ...drawException(random) })
  }
  return deeds.toSorted((one, other) => one.at - other.at)
}

function anywhere(random: SeededRandom, nodes: readonly NodePlan[], endsAt: number) {
  return { at: random.integer(endsAt), node: random.pick(nodes).name }
}

function drawAcquire(random: SeededRandom): AcquireDeed {
  const ttlMs = random.pick(ttls)
  const chance = (share: number): boolean => random.next() < share
  return {
    key: random.pick(lockKeys),
    ttlMs,
    waitMs: chance(0.5) ? 0 : random.integer(2_500),
    hasHeartbeat: chance(0.8),
    maxLifetimeMs: chance(0.1) ? ttlMs + random.integer(1_500) : null,
    abortAfterMs: chance(0.12) ? random.integer(800) : null,
    holdMs: chance(0.15) ? null : random.pick([1, 20, 200, 1_000, 2_500]),
    extendToMs: chance(0.15) ? random.pick(ttls) : null,
    how: random.pick(['lease', 'lease', 'lease', 'release-twice', 'run', 'throw']),
  }
}

function drawMishap(
  random: SeededRandom,
  where: { at: number; node: string },
  tasks: readonly TaskPlan[],
  isPortable: boolean,
): Deed {
  const downMs = random.pick([0, 50, 600, 2_500])
  const isEdited = random.next() < 0.2
  const task = tasks.length === 0 ? null : random.pick(tasks).name
  switch (random.integer(9)) {
    case 0:
    case 1:
      return { ...where, ...drawPause(random, isPortable) }
    case 2:
    case 3:
      return { ...where, kind: 'crash', downMs, isEdited }
    case 4:
      return { ...where, kind: 'restart', downMs, isEdited, drainMs: random.pick([0, 300, 5_000]) }
    case 5:
      return { ...where, kind: 'outage', forMs: random.integer(2_500), hangs: random.next() < 0.5 }
    case 6:
      // No clock would notice both a suspend and a wall clock that was set back meanwhile.
      if (isPortable) return { ...where, ...drawPause(random, isPortable) }
      return { ...where, kind: 'set-wall-clock', byMs: random.integer(2 * 60_000) - 60_000 }
    case 7:
      if (task === null) return { ...where, kind: 'look', key: random.pick(lockKeys) }
      return { ...where, kind: 'control', task, what: random.pick(['pause', 'resume', 'cancel']) }
    default:
      return { ...where, kind: 'revoke', key: random.pick(lockKeys) }
  }
}

function drawPause(random: SeededRandom, isPortable: boolean) {
  return {
    kind: isPortable
      ? random.pick(['pause', 'block', 'suspend'] as const)
      : random.pick(['pause', 'block'] as const),
    forMs: random.integer(random.pick([200, 1_500, 4_000])),
    answersFirst: random.next() < 0.5,
  }
}

function drawException(random: SeededRandom): NamedException {
  const key = random.pick(lockKeys)
  switch (random.integer(4)) {
    case 0:
      return { what: 'delete-record', key }
    case 1:
      return { what: 'immediate-release', key }
    case 2:
      return { what: 'lose-data' }
    default:
      return { what: 'step-store-clock', byMs: random.integer(2 * longestStepMs) - longestStepMs }
  }
}

/** Faults of this many calls of each node are drawn; later ones pass. */
const callsWithFaults = 250

function drawFaults(random: SeededRandom, nodes: readonly NodePlan[]): readonly CallFault[] {
  const faults: CallFault[] = []
  for (const { name: node } of nodes) {
    const share = random.pick([0, 0.05, 0.15, 0.35])
    for (let call = 1; call <= callsWithFaults && share > 0; call++) {
      if (random.next() >= share) continue
      const delayMs = random.integer(random.pick([30, 400, longestDelayMs]))
      faults.push({ node, call, kind: random.pick(faultKinds), delayMs })
    }
  }
  return faults
}
