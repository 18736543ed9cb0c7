import type { Entry, TaskEnd } from '../history.ts'
import type { Plan, TaskPlan } from '../plan.ts'
import { type GrantedRun, runsOf } from '../task-runs.ts'
import { wasClockStepped } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

/** So long a request may wait in a fleet that is well and has nothing else to do: nodes look each second. */
const promptMs = 2_500

/**
 * G5 and G6 for what operators ask for: each request is carried out once, whatever is sent twice, on none but decided
 * slots; none is lost that the store took; each waits no longer than for what goes before it; and handlers are told.
 */
export function manualRuns(history: readonly Entry[], { tasks }: Plan): readonly Violation[] {
  return tasks.flatMap((task) => {
    const runs = runsOf(history, task.name)
    const orders = takenOrders(history, task.name)
    // The store forgets with its data what it was asked for.
    const losesData = history.some((entry) => entry.kind === 'exception' && entry.what === 'lose-data')
    return [
      ...(losesData ? [] : repeatedRuns(runs, task)),
      ...(losesData ? [] : lostOrders(history, runs, orders, task)),
      ...untoldHandlers(history, runs, task),
    ]
  })
}

interface TakenOrder {
  readonly id: string
  readonly isRange: boolean
  /** Of a range, the slots that were decided when it was asked for. */
  readonly from: number
  readonly upTo: number
}

/** What the store took, in the words in which it keeps it. */
function takenOrders(history: readonly Entry[], task: string): TakenOrder[] {
  const taken: TakenOrder[] = []
  for (const entry of history) {
    if (entry.kind !== 'request' || entry.task !== task || entry.what !== 'order') continue
    if (entry.outcome !== 'applied') continue
    const kept = JSON.parse(entry.orders) as readonly { id: string; at: number; upTo?: number }[]
    const last = kept.at(-1)
    if (last === undefined) continue
    const { id, at, upTo } = last
    taken.push({ id, isRange: upTo !== undefined, from: at, upTo: upTo ?? at })
  }
  return taken
}

function repeatedRuns(runs: readonly GrantedRun[], task: TaskPlan): Violation[] {
  const violations: Violation[] = []
  const made = new Set<string>()
  for (const { claim, order, isTakeover } of runs) {
    if (order === null || isTakeover) continue
    const name = `${order} ${claim.slot}`
    const what = `${task.name} ${claim.slot} was run twice for one request, ${order}.`
    if (made.has(name)) violations.push({ promise: 'G5', at: claim.at, what })
    made.add(name)
  }
  return violations
}

function lostOrders(
  history: readonly Entry[],
  runs: readonly GrantedRun[],
  orders: readonly TakenOrder[],
  task: TaskPlan,
): Violation[] {
  const violations: Violation[] = []
  const end = history.find(
    (entry): entry is EntryOf<'task-end'> => entry.kind === 'task-end' && entry.task.name === task.name,
  )
  if (end === undefined) return violations
  const broken = (what: string): void =>
    void violations.push({ promise: 'G6', at: end.at, what: `${task.name}: ${what}` })
  const waiting = new Set(idsOf(end.task))
  const ids = new Map<string, number>()
  for (const { id, isRange, from, upTo } of orders) {
    ids.set(id, (ids.get(id) ?? 0) + 1)
    if (ids.get(id) === 2) broken(`${id} was taken twice.`)
    if (waiting.has(id)) continue
    const done = runs.filter((run) => run.order === id && !run.isTakeover).map(({ claim }) => claim.slot)
    if (!isRange && done.length !== 1) broken(`${id} was taken, and ran ${done.length} times.`)
    if (isRange && end.task.isUnedited) {
      const wanted = slotsWithin(task.everyMs, from, upTo)
      if (done.join() !== wanted.join())
        broken(`${id} is to run ${wanted.join(' ')}, and ran ${done.join(' ')}.`)
    }
  }
  if (waiting.size > 0 && isIdle(end, runs) && !wasClockStepped(history, history.length))
    broken(`${[...waiting].join(', ')} still waits, and nothing runs.`)
  return violations
}

function isIdle({ at, task }: EntryOf<'task-end'>, runs: readonly GrantedRun[]): boolean {
  const last = runs.at(-1)
  return task.isAttended && !task.isRunning && at - (last?.endedAt ?? 0) > promptMs
}

function idsOf({ orders }: TaskEnd): readonly string[] {
  if (orders === '') return []
  return (JSON.parse(orders) as readonly { readonly id: string }[]).map(({ id }) => id)
}

function slotsWithin(everyMs: number, from: number, upTo: number): number[] {
  const slots: number[] = []
  for (let slot = Math.ceil(from / everyMs) * everyMs; slot <= upTo; slot += everyMs) slots.push(slot)
  return slots
}

/** A handler sees `isManual` for what an operator asked for, and for nothing else. Retries are not told apart. */
function untoldHandlers(history: readonly Entry[], runs: readonly GrantedRun[], task: TaskPlan): Violation[] {
  const violations: Violation[] = []
  for (const entry of history) {
    if (entry.kind !== 'run' || entry.task !== task.name) continue
    const granted = runs.find(({ claim }) => claim.fence === entry.fence)
    if (granted === undefined || granted.isTakeover) continue
    const isManual = granted.order !== null
    if (entry.isManual === isManual) continue
    const what = `${entry.by} takes ${task.name} ${entry.slot} for ${isManual ? 'a slot' : 'a manual run'}.`
    violations.push({ promise: 'G7', at: entry.at, what })
  }
  return violations
}
