import { stopGraceMs } from '../../src/scheduler/run.ts'
import type { Entry } from '../history.ts'
import type { Plan, TaskPlan } from '../plan.ts'
import { type GrantedRun, runsOf } from '../task-runs.ts'
import { wasClockStepped } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

/** A look, a request and an answer. */
const roundMs = 700

/**
 * G3 and G6: `timeout` and `cancelled` are recorded where they are so; a run that took too long is renewed no more a
 * grace later; one that a newer slot asked to stop makes way; and who lost its lock is told in that turn.
 */
export function runLimits(history: readonly Entry[], plan: Plan): readonly Violation[] {
  const violations: Violation[] = []
  for (const task of plan.tasks) {
    const runs = runsOf(history, task.name)
    violations.push(...falseEnds(history, task, runs), ...overstayers(history, task, runs, plan))
    if (task.overlap === 'cancel') violations.push(...thoseInTheWay(history, task, runs))
  }
  for (const entry of history) {
    if (entry.kind !== 'lock-lost' || entry.isTold) continue
    const what = `${entry.by} lost the lock of ${entry.task}/${entry.fence}, and its run was not told.`
    violations.push({ promise: 'G3', at: entry.at, what })
  }
  return violations
}

function beginningOf(history: readonly Entry[], task: string, fence: number): EntryOf<'run'> | undefined {
  return history.find(
    (entry): entry is EntryOf<'run'> => entry.kind === 'run' && entry.task === task && entry.fence === fence,
  )
}

/** Ends that are recorded with a reason which did not apply. */
function falseEnds(history: readonly Entry[], task: TaskPlan, runs: readonly GrantedRun[]): Violation[] {
  const violations: Violation[] = []
  for (const [index, entry] of history.entries()) {
    if (entry.kind !== 'completion' || entry.task !== task.name) continue
    const { at, fence, reason, slot } = entry
    const broken = (): void =>
      void violations.push({
        promise: 'G6',
        at,
        what: `${task.name} ${slot} ended: ${reason}, which is not so.`,
      })
    if (reason === 'timeout') {
      const begun = beginningOf(history, task.name, fence)?.at ?? Infinity
      // On the fastest clock.
      if (task.timeoutMs === null || at - begun < task.timeoutMs / 1.2 - 1) broken()
    } else if (reason === 'cancelled') {
      const { index: granted = 0, claim } = runs.find((run) => run.claim.fence === fence) ?? {}
      const wasAsked = history
        .slice(granted, index)
        .some(
          (one) =>
            'task' in one &&
            one.task === task.name &&
            one.kind === 'request' &&
            one.what === 'cancel' &&
            one.outcome === 'applied',
        )
      // By its own node, where that finds the newer slot.
      const isInTheWay = task.overlap === 'cancel' && hasNewerSlot(history, task, index, claim)
      if (!wasAsked && !isInTheWay) broken()
    }
  }
  return violations
}

/** A slot has come due since the mark that the run was granted at. */
function hasNewerSlot(
  history: readonly Entry[],
  { everyMs, editedEveryMs }: TaskPlan,
  to: number,
  claim: EntryOf<'claim'> | undefined,
): boolean {
  if (claim === undefined) return false
  // The store's clock may have been stepped since: what its last answer said counts.
  const last = history.slice(0, to).findLast((entry) => entry.kind === 'claim')
  const now = Math.max(last?.storeNow ?? 0, claim.storeNow + (history[to]?.at ?? 0) - claim.at)
  return [everyMs, editedEveryMs].some((each) => Math.floor(now / each) * each > claim.mark)
}

/** Runs that are renewed although their time was up and their grace over, in a process that did not stand still. */
function overstayers(
  history: readonly Entry[],
  task: TaskPlan,
  runs: readonly GrantedRun[],
  { nodes }: Plan,
): Violation[] {
  const { timeoutMs, name } = task
  if (timeoutMs === null) return []
  return runs.flatMap(({ claim, endedAt }): Violation[] => {
    const begun = beginningOf(history, name, claim.fence)
    if (begun === undefined) return []
    const { rate = 1, timersLateMs = 0 } = nodes.find((node) => begun.by.startsWith(`${node.name}.`)) ?? {}
    const until = begun.at + (timeoutMs + stopGraceMs) / rate + 2 * timersLateMs + roundMs
    const after = history.slice(history.indexOf(begun))
    for (const entry of after) {
      if (entry.at > endedAt) return []
      if (!('by' in entry) || entry.by !== begun.by) continue
      if (/^(pauses|blocks|suspends|crashes)$/.test(entry.kind)) return []
      if (entry.kind === 'run' && entry !== begun && entry.task === name) return []
      const isRenewal = entry.kind === 'call' && entry.verb === 'refresh-run'
      if (!isRenewal || entry.at <= until || !entry.what.split(' ').includes(name)) continue
      return [{ promise: 'G6', at: entry.at, what: `${name} ${claim.slot} is renewed past its timeout.` }]
    }
    return []
  })
}

/** Runs that a newer slot waits for: asked to stop, they make way once nothing goes wrong any more. */
function thoseInTheWay(
  history: readonly Entry[],
  { name, ttlMs }: TaskPlan,
  runs: readonly GrantedRun[],
): Violation[] {
  const healedAt = history.find(({ kind }) => kind === 'faults-end')?.at ?? Infinity
  if (wasClockStepped(history, history.length)) return []
  const lastAt = history.find((entry) => entry.kind === 'task-end')?.at ?? 0
  return runs.flatMap(({ claim, index, endedAt }): Violation[] => {
    const held = history
      .slice(index)
      .find(
        (entry): entry is EntryOf<'claim'> =>
          entry.kind === 'claim' &&
          entry.task === name &&
          entry.outcome === 'held' &&
          entry.order === null &&
          entry.at >= healedAt + 1_000 &&
          entry.at < endedAt,
      )
    if (held === undefined) return []
    const boundMs = stopGraceMs + 2 * ttlMs + roundMs
    if (Math.min(endedAt, lastAt) - held.at <= boundMs) return []
    const what = `${name} ${claim.slot} goes on for more than ${boundMs} ms, in the way of a newer slot.`
    return [{ promise: 'G6', at: held.at, what }]
  })
}
