import type { RunHistoryEntry } from 'leasehold'
import type { Hold } from '../history/read-history.ts'
import { taskPlans } from '../task-plans.ts'
import type { Evidence, Violation } from './checker.ts'

type TaskName = keyof typeof taskPlans
/** A run, with what it was of. */
export type Run = Hold & { readonly run: { readonly slot: number; readonly attempt: number } }

/** Slots so young are not judged: their retry may still be to come. */
const settledAfterMs = 3_000

/** G5 and G6, task by task: what the workers saw, held against what the store says. */
export function slots(evidence: Evidence): readonly Violation[] {
  const names = Object.keys(taskPlans) as TaskName[]
  return names.flatMap((task) => {
    const runs = runsOf(evidence, task)
    const entries = evidence.tasks.get(task) ?? []
    return [
      ...oncePerSlot(evidence, task, runs),
      ...noneEarly(runs),
      ...noSilentMiss(evidence, task, entries),
      ...asOftenAsAsked(evidence, task, runs, entries),
      ...recordsAgree(evidence, task, runs, entries),
    ]
  })
}

/** What the workers saw of one task. */
export function runsOf({ history }: Evidence, task: string): readonly Run[] {
  return history.holds.filter((hold): hold is Run => hold.of === `task:${task}` && hold.run !== null)
}

/** Each attempt at a slot is begun once; another attempt only where retries are asked for. */
export function oncePerSlot({ history }: Evidence, task: string, runs: readonly Run[]): readonly Violation[] {
  const found: Violation[] = []
  const begun = new Map<string, Run>()
  for (const run of runs) {
    const name = `${run.run.slot}/${run.run.attempt}`
    const other = begun.get(name)
    if (other !== undefined && history.exceptionBetween(other.from - 2_000, run.from, run.of) === undefined) {
      const what = `${task}: attempt ${run.run.attempt} at slot ${run.run.slot} was begun by ${other.by} and by ${run.by}`
      found.push({ checker: 'once-per-slot', what, at: run.from })
    }
    begun.set(name, run)
  }
  return found
}

/** By the clock of the store, which is the host's: workers' wrong ones are of their own making. */
export function noneEarly(runs: readonly Run[]): readonly Violation[] {
  return runs
    .filter(({ wall, run }) => wall < run.slot)
    .map(({ of, by, wall, run, from }) => ({
      checker: 'no-slot-early',
      what: `${of}: ${by} began slot ${run.slot} ${run.slot - wall} ms before it was due`,
      at: from,
    }))
}

/** From the first slot after the task was registered to the end, each has an entry, and each that did not run a reason. */
function noSilentMiss(
  { workedUntil, wallMinusBoot }: Evidence,
  task: TaskName,
  entries: readonly RunHistoryEntry[],
): readonly Violation[] {
  const at = (slot: number): number => slot - wallMinusBoot
  const found: Violation[] = []
  const registeredAt = entries.findLast(({ state }) => state === 'registered')?.slot.getTime()
  const known = new Set(
    entries.filter(({ state }) => state !== 'registered').map(({ slot }) => slot.getTime()),
  )
  if (registeredAt === undefined) {
    return [{ checker: 'no-silent-miss', what: `${task}: it was never registered`, at: at(workedUntil) }]
  }
  const period = periodOf(task)
  for (let slot = nextSlot(registeredAt, period); slot < workedUntil - settledAfterMs; slot += period) {
    if (!known.has(slot)) {
      found.push({
        checker: 'no-silent-miss',
        what: `${task}: slot ${slot} is nowhere in the history`,
        at: at(slot),
      })
    }
  }
  for (const { slot, attempt, state, reason } of entries) {
    const isDecision = state === 'missed' || state === 'skipped'
    if ((attempt === 0 && !isDecision && state !== 'registered') || (isDecision && reason === null)) {
      const what = `${task}: slot ${slot.getTime()} is "${state}" without a reason`
      found.push({ checker: 'no-silent-miss', what, at: at(slot.getTime()) })
    }
  }
  return found
}

/** At most once, or at least once, as the task asks. */
function asOftenAsAsked(
  evidence: Evidence,
  task: TaskName,
  runs: readonly Run[],
  entries: readonly RunHistoryEntry[],
): readonly Violation[] {
  const { onCrash } = taskPlans[task]
  if (onCrash === 'skip') {
    return runs
      .filter(({ run }) => run.attempt > 1)
      .map(({ run, by, from }) => ({
        checker: 'at-most-once',
        what: `${task}: ${by} began slot ${run.slot} as attempt ${run.attempt}`,
        at: from,
      }))
  }
  const { maxAttempts, maxLifetime } = taskPlans.retried
  const latest = new Map<number, RunHistoryEntry>()
  // The latest attempt of a slot comes first.
  for (const entry of entries) {
    const slot = entry.slot.getTime()
    if (!latest.has(slot)) latest.set(slot, entry)
  }
  return [...latest.values()]
    .filter(
      ({ state, attempt, startedAt }) =>
        (state === 'lost' || state === 'running') &&
        attempt < maxAttempts &&
        startedAt.getTime() < evidence.workedUntil - maxLifetime - settledAfterMs,
    )
    .map(({ slot, attempt, state }) => ({
      checker: 'at-least-once',
      what: `${task}: attempt ${attempt} at slot ${slot.getTime()} is "${state}", and there was no other`,
      at: slot.getTime() - evidence.wallMinusBoot,
    }))
}

/** What was begun is in the history, under its fence; what has succeeded there was done; what ended is recorded. */
export function recordsAgree(
  { history, wallMinusBoot }: Evidence,
  task: string,
  runs: readonly Run[],
  entries: readonly RunHistoryEntry[],
): readonly Violation[] {
  const found: Violation[] = []
  const registeredAt = entries.findLast(({ state }) => state === 'registered')?.slot.getTime() ?? 0
  const leftAt = new Map(history.all('closed').map(({ by, at }) => [by, at]))
  const byFence = new Map(entries.map((entry) => [entry.fence, entry]))
  for (const { run, fence, by, from, outcome, letGoAt } of runs) {
    if (from + wallMinusBoot < registeredAt + 2_000) continue
    const entry = byFence.get(fence)
    if (entry === undefined || entry.slot.getTime() !== run.slot || entry.attempt !== run.attempt) {
      const what = `${task}: the run of slot ${run.slot}/${run.attempt} by ${by} (fence ${fence}) is not in the history`
      found.push({ checker: 'records-agree', what, at: from })
    } else if (entry.state === 'succeeded' && outcome !== 'done') {
      const what = `${task}: slot ${run.slot}/${run.attempt} by ${by} "succeeded", and its handler did not`
      found.push({ checker: 'records-agree', what, at: from })
    } else if (
      outcome !== null &&
      entry.late === null &&
      (entry.state === 'running' || entry.state === 'lost') &&
      (leftAt.get(by) ?? 0) > letGoAt + settledAfterMs
    ) {
      const what = `${task}: slot ${run.slot}/${run.attempt} by ${by} ended, and nothing of that was ever recorded`
      found.push({ checker: 'records-agree', what, at: from })
    }
  }
  return found
}

function periodOf(task: TaskName): number {
  const plan = taskPlans[task]
  return 'every' in plan ? plan.every : 1_000
}

function nextSlot(after: number, period: number): number {
  return (Math.floor(after / period) + 1) * period
}
