import { attendances, attended, refusals, tellingTime } from '../attendance.ts'
import type { Entry } from '../history.ts'
import type { NodePlan, Plan, TaskPlan } from '../plan.ts'
import { type GrantedRun, isBusyWithin, isUnfinishedWithin, runsOf } from '../task-runs.ts'
import { wasClockStepped } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

/**
 * A slot can take so many timers in a row, one set after the other: to look for what is due, anew when the store's time has
 * moved, after an answer `early`. Where all of them are late the next slot may come first.
 */
const timersNeeded = 5

/**
 * G6: the reason that the store has for a slot is the true one. `down`: no process that had the schedule was there all the
 * time, was well, and reached the store; `late`: the start deadline was past; `paused`: an operator had paused the task;
 * `overlap`: another run had not ended, or not before the next slot came due.
 */
export function exactReasons(history: readonly Entry[], plan: Plan): readonly Violation[] {
  return plan.tasks.flatMap((task) => [
    ...falseDowntimes(history, task, plan),
    ...falseSkips(history, task, plan),
    ...pausedRuns(history, task),
    ...lateRuns(history, task, plan),
  ])
}

/** Slots that were passed over although they could have been decided, or run, or for another reason than the true one. */
function falseDowntimes(history: readonly Entry[], task: TaskPlan, plan: Plan): Violation[] {
  const violations: Violation[] = []
  const fleet = attendances(history, task.name)
  const runs = runsOf(history, task.name)
  const told = toldReasons(history, task.name)
  const lateMsOf = (by: string): number => nodeOf(plan.nodes, by)?.timersLateMs ?? 0
  for (const [index, claim] of deciding(history, task.name)) {
    const { at, by, after, slot, storeNow } = claim
    // The moments of the past cannot be told from a clock that was stepped since.
    if (wasClockStepped(history, index)) continue
    const isEdited = fleet.find((one) => one.by === by)?.isEdited === true
    const everyMs = isEdited ? task.editedEveryMs : task.everyMs
    const jitterMs = longestJitterMs(task, everyMs)
    const broken = (what: string): void => void violations.push({ promise: 'G6', at, what })
    const earlier = grantedBefore(runs, index)
    for (let due = Math.floor(after / everyMs + 1) * everyMs; due < slot; due += everyMs) {
      const from = due - storeNow + at
      const to = from + everyMs + jitterMs
      const reason = told.get(due)
      if (isStillWanted(task, { due, everyMs, claim, inaccuracyMs: inaccuracyOf(history, index, plan) })) {
        broken(`${task.name} ${due} is left out, and is to be caught up.`)
      } else if (reason === overtakenReason) {
        if (!isUnfinishedWithin(earlier, from, to))
          broken(`${task.name} ${due} is missed: overlap, and nothing ran.`)
      } else if (reason === 'down' && isBusyWithin(earlier, from + everyMs, from + everyMs)) {
        broken(`${task.name} ${due} is missed: down, and another run was in its way.`)
      } else if (reason === 'down' && task.catchUp !== 'all') {
        // Where it waits for another run, whoever waits with it may be gone when that ends.
        const isQueued = task.overlap !== 'skip' && isBusyWithin(earlier, from, to)
        const waitsUntil = isQueued ? at : from + everyMs
        const idle = fleet.find(
          (one) =>
            one.isEdited === isEdited &&
            attended(one, from + jitterMs, waitsUntil) &&
            everyMs - jitterMs > timersNeeded * lateMsOf(one.by),
        )
        if (idle !== undefined) broken(`${task.name} ${due} is missed: down, and ${idle.by} was there.`)
      }
    }
  }
  return violations
}

/** What `history()` tells in the end of the slots that nobody decided; nothing of those before an edit. */
function toldReasons(history: readonly Entry[], task: string): ReadonlyMap<number, string | null> {
  const ends = history.flatMap((entry) =>
    entry.kind === 'task-end' && entry.task.name === task ? [entry.task] : [],
  )
  const missed = ends.flatMap(({ told }) => told.filter(({ state }) => state === 'missed'))
  return new Map(missed.map(({ slot, reason }) => [slot, reason]))
}

const overtakenReason = 'overlap'

interface PassedSlot {
  readonly due: number
  readonly everyMs: number
  readonly claim: EntryOf<'claim'>
  readonly inaccuracyMs: number
}

/** With `catchUp: 'all'`: it is within the window, and among as many as may wait. */
function isStillWanted(task: TaskPlan, { due, everyMs, claim, inaccuracyMs }: PassedSlot): boolean {
  if (task.catchUp !== 'all') return false
  const { storeNow } = claim
  const windowMs = Math.max(task.catchUpWindowMs ?? Infinity, task.startDeadlineMs)
  const newest = Math.floor((storeNow + inaccuracyMs) / everyMs) * everyMs
  const isAmongNewest = (newest - due) / everyMs < task.catchUpMax
  return isAmongNewest && storeNow - due < windowMs - inaccuracyMs
}

/** Slots that were decided without a run, for a reason that did not apply. */
function falseSkips(history: readonly Entry[], task: TaskPlan, plan: Plan): Violation[] {
  const violations: Violation[] = []
  for (const [index, claim] of deciding(history, task.name)) {
    const { at, slot, reason } = claim
    const isTrue =
      reason === 'paused'
        ? isPaused(history, task.name, index)
        : reason === 'late'
          ? isLate(history, index, task, plan)
          : reason !== 'overlap' || isOverlapped(history, claim, index)
    if (isTrue) continue
    violations.push({
      promise: 'G6',
      at,
      what: `${task.name} ${slot} is skipped: ${reason}, which is not so.`,
    })
  }
  return violations
}

/** Slots of the schedule that were granted, or retried, while an operator had paused the task. */
function pausedRuns(history: readonly Entry[], task: TaskPlan): Violation[] {
  if (history.some((entry) => entry.kind === 'exception' && entry.what === 'lose-data')) return []
  return runsOf(history, task.name).flatMap(({ claim, index, order }: GrantedRun): Violation[] => {
    if (order !== null || !isPaused(history, task.name, index)) return []
    return [{ promise: 'G6', at: claim.at, what: `${task.name} ${claim.slot} runs, and the task is paused.` }]
  })
}

/** Slots that ran although they were too late, and had not waited for another run. */
function lateRuns(history: readonly Entry[], task: TaskPlan, plan: Plan): Violation[] {
  if (wasClockStepped(history, history.length)) return []
  const runs = runsOf(history, task.name)
  const jitterMs = longestJitterMs(task, Math.max(task.everyMs, task.editedEveryMs))
  return [...deciding(history, task.name)].flatMap(([index, claim]): Violation[] => {
    const { slot, storeNow, at, by, outcome } = claim
    const lateMs = storeNow - slot - jitterMs
    if (outcome !== 'granted' || lateMs <= latestMs(task)) return []
    const { rate = 1 } = nodeOf(plan.nodes, by) ?? {}
    const inaccuracyMs = inaccuracyOf(history, index, plan) + Math.abs(rate - 1) * 10_000
    if (lateMs <= latestMs(task) + inaccuracyMs) return []
    // Such a claim may have been sent long before, and asked again more than once.
    const isDelayed = history
      .slice(0, index)
      .some(
        (entry) => entry.kind === 'call' && entry.by === by && entry.fault !== null && entry.verb === 'claim',
      )
    const hasWaited = isUnfinishedWithin(grantedBefore(runs, index), at - storeNow + slot, at)
    if (isDelayed || hasWaited) return []
    return [{ promise: 'G6', at, what: `${task.name} ${slot} runs, ${lateMs} ms late.` }]
  })
}

/** Those that were granted earlier in the history. */
function grantedBefore(runs: readonly GrantedRun[], index: number): readonly GrantedRun[] {
  return runs.filter((run) => run.index < index)
}

/** How much later than its own instant a slot may be claimed. */
function longestJitterMs({ jitterMs }: TaskPlan, everyMs: number): number {
  return Math.min(jitterMs, everyMs * 0.9)
}

/** How late a slot may begin. */
function latestMs({ catchUp, catchUpWindowMs, startDeadlineMs }: TaskPlan): number {
  return Math.max(startDeadlineMs, catchUp === 'none' ? 0 : (catchUpWindowMs ?? Infinity))
}

function nodeOf(nodes: readonly NodePlan[], by: string): NodePlan | undefined {
  return nodes.find(({ name }) => by.startsWith(`${name}.`))
}

/** The claims that moved the mark, and where they stand. */
function* deciding(history: readonly Entry[], task: string): Iterable<[number, EntryOf<'claim'>]> {
  const granted = new Set<string>()
  for (const [index, entry] of history.entries()) {
    if (entry.kind !== 'claim' || entry.task !== task) continue
    if (entry.order !== null) {
      // Asked again, it may be the answer to the claim of a slot.
      if (entry.fence > 0) granted.add(entry.token)
      continue
    }
    const isGranted = entry.outcome === 'granted' && !granted.has(entry.token)
    if (isGranted) granted.add(entry.token)
    if (isGranted || entry.outcome === 'skipped') yield [index, entry]
  }
}

/** The start deadline is past by the store's clock, as exactly as the node could know it when it asked. */
function isLate(history: readonly Entry[], index: number, task: TaskPlan, plan: Plan): boolean {
  const claim = history[index] as EntryOf<'claim'>
  return claim.storeNow - claim.slot > latestMs(task) - inaccuracyOf(history, index, plan)
}

function inaccuracyOf(history: readonly Entry[], index: number, { nodes, fired }: Plan): number {
  const claim = history[index] as EntryOf<'claim'>
  const { rate = 1 } = nodeOf(nodes, claim.by) ?? {}
  return inaccuracy(history.slice(0, index), claim, { rate, fired: fired?.name ?? null })
}

/**
 * How far ahead a node may have thought the store's clock to be: by as much as its own runs fast, since the last answer
 * that told it the time. It may go by an earlier answer that agrees with that one, as far as its round trip says.
 */
function inaccuracy(
  before: readonly Entry[],
  { by, task }: EntryOf<'claim'>,
  { rate, fired }: { readonly rate: number; readonly fired: string | null },
): number {
  const calls = new Map<number, EntryOf<'call'>>()
  let told = { at: 0, tookMs: 0 }
  let most = 0
  for (const entry of before) {
    if (entry.kind === 'call' && entry.by === by) {
      calls.set(entry.number, entry)
      if (entry.verb !== 'claim' || !entry.what.split(' ').includes(task)) continue
      most = Math.max(most, Math.max(0, rate - 1) * (entry.at - told.at) + 2 * told.tookMs + 1)
    } else if (entry.kind === 'answer' && entry.by === by) {
      const { verb = '', what = '', at = 0, fault = null } = calls.get(entry.number) ?? {}
      // It tells neither the time nor what became of a slot.
      if (fault !== null && refusals.has(fault)) continue
      // What fires the other task looks at a clock of its own.
      if (tellingTime.has(verb) && what !== fired) told = { at: entry.at, tookMs: entry.at - at }
      // What was asked before about this task is decided.
      if (verb === 'claim' && what.split(' ').includes(task)) most = 0
    }
  }
  return most
}

function isPaused(history: readonly Entry[], task: string, to: number): boolean {
  const last = history.slice(0, to).findLast((entry) => {
    if (entry.kind !== 'request' || entry.task !== task || entry.outcome !== 'applied') return false
    return entry.what === 'pause' || entry.what === 'resume'
  })
  return last?.kind === 'request' && last.what === 'pause'
}

/** A run was under way: when the slot was decided, or since it was due where it waited for that run to end. */
function isOverlapped(history: readonly Entry[], claim: EntryOf<'claim'>, to: number): boolean {
  const { task, slot, storeNow, at, decide } = claim
  const since = decide === 'run' ? Infinity : at - (storeNow - slot)
  const open = new Set<number>()
  for (const entry of history.slice(0, to)) {
    if (!('task' in entry) || entry.task !== task) continue
    if (entry.kind === 'claim' && entry.fence > 0) open.add(entry.fence)
    const hasEnded = entry.kind === 'completion' && entry.answer === 'completed' && entry.at < since
    if (hasEnded) open.delete(entry.fence)
  }
  return open.size > 0
}
