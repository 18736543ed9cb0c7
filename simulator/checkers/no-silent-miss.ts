import type { Entry, LogRow, TaskEnd } from '../history.ts'
import type { Plan, TaskPlan } from '../plan.ts'
import { runsOf } from '../task-runs.ts'
import { wasClockSetBack } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

const reasons = new Set([
  'overlap',
  'paused',
  'late',
  'down',
  'edited',
  'stopped',
  'fence',
  'lock',
  'unanswered',
])
const undone = new Set(['skipped', 'missed', 'registered'])
/** So long a slot may be undecided in a fleet that is well. */
const promptMs = 1_500

/**
 * G6: the rows of the log follow one another from the registration to the mark without a gap, each that is no run says
 * why; the mark keeps up; a lost attempt is retried where that is wanted; and `history()` has an entry for each slot.
 */
export function noSilentMiss(history: readonly Entry[], { tasks }: Plan): readonly Violation[] {
  const violations: Violation[] = []
  for (const [index, entry] of history.entries()) {
    if (entry.kind !== 'task-end') continue
    const told = entry.task
    const broken = (what: string): void =>
      void violations.push({ promise: 'G6', at: entry.at, what: `${told.name}: ${what}` })
    // After records were lost and the clock was set back, the log begins in the middle of known slots.
    const isUnstepped = !wasClockSetBack(history, index)
    checkChain(told, broken)
    checkReasons(told, broken)
    const before = history.slice(0, index)
    const scene = sceneOf(before, told, tasks)
    if (isUnstepped) checkPace(entry, scene, broken)
    checkRetries(told, before, scene, broken)
    if (told.isUnedited) checkTold(told, scene, broken)
    checkRuns(told, before, broken)
  }
  return violations
}

interface Scene {
  /** Null: something else fires it. */
  readonly task: TaskPlan | null
  /** `slot/attempt` of runs that an operator asked for. */
  readonly manual: ReadonlySet<string>
  /** When the last run ended; `Infinity` while one is under way. */
  readonly idleSince: number
  /** It is, or was, a retry. */
  readonly isRetried: boolean
}

function sceneOf(history: readonly Entry[], { name }: TaskEnd, tasks: readonly TaskPlan[]): Scene {
  const runs = runsOf(history, name)
  const asked = runs.filter(({ order }) => order !== null)
  return {
    task: tasks.find((one) => one.name === name) ?? null,
    manual: new Set(asked.map(({ claim: { slot, attempt } }) => `${slot}/${attempt}`)),
    idleSince: runs.at(-1)?.endedAt ?? 0,
    isRetried: runs.at(-1)?.isTakeover === true,
  }
}

type Broken = (what: string) => void

function checkChain({ log, mark }: TaskEnd, broken: Broken): void {
  const movers = log
    .filter(({ after, slot, state }) => after < slot || state === 'registered')
    .toSorted((one, other) => one.slot - other.slot)
  let at: number | null = null
  for (const { after, slot, state } of movers) {
    if (state === 'registered' && at === null) at = slot
    else if (after !== at) broken(`the slots between ${at} and ${after} have no reason.`)
    at = slot
  }
  if (at !== mark) broken(`the slots between ${at} and the mark ${mark} have no reason.`)
}

function checkReasons({ log }: TaskEnd, broken: Broken): void {
  for (const { slot, attempt, state, reason, after, gap } of log) {
    const hasReason = state === 'registered' || (reason !== null && reasons.has(reason))
    if (undone.has(state) && !hasReason) broken(`${slot}/${attempt} is ${state}: ${reason}.`)
    if (attempt === 0 && !undone.has(state)) broken(`${slot} did not run, and is ${state}.`)
    if (after < slot && gap !== '' && !reasons.has(gap))
      broken(`the slots before ${slot} are missed: ${gap}.`)
  }
}

function checkPace({ at, task: told }: EntryOf<'task-end'>, scene: Scene, broken: Broken): void {
  const { storeNow, everyMs, mark, isAttended, log, isRunning, isPaused, lapsedForMs } = told
  if (!isAttended) return
  const open = log.filter(({ state }) => state === 'running')
  if (open.length > (isRunning ? 1 : 0)) broken(`${open.length} runs are open.`)
  if (lapsedForMs > promptMs && !isPaused) broken(`its run lapsed ${lapsedForMs} ms ago, and stands open.`)
  const { jitterMs = 0, overlap = 'skip' } = scene.task ?? {}
  // A slot may wait for the run before it, under any policy for a retry.
  if ((overlap !== 'skip' || scene.isRetried) && !(at - scene.idleSince > promptMs)) return
  const latestMs = promptMs + Math.min(jitterMs, everyMs)
  const due = Math.floor((storeNow - latestMs) / everyMs) * everyMs
  if (mark < due) broken(`${due} was due long ago, and the mark is ${mark}.`)
}

function checkRetries(
  { name, log, onCrash, maxAttempts, isPaused, isAttended, isRunning }: TaskEnd,
  history: readonly Entry[],
  { manual }: Scene,
  broken: Broken,
): void {
  const bySlot = new Map<number, LogRow[]>()
  for (const row of log) bySlot.set(row.slot, [...(bySlot.get(row.slot) ?? []), row])
  for (const [slot, rows] of bySlot) {
    const ended = rows.filter(
      ({ attempt, state }) =>
        attempt > 0 && !manual.has(`${slot}/${attempt}`) && /succeeded|failed|abandoned|skipped/.test(state),
    )
    if (ended.length > 1) broken(`${slot} has ${ended.length} outcomes.`)
    const attempts = Math.max(...rows.map(({ attempt }) => attempt))
    const last = rows.find(({ attempt }) => attempt === attempts)
    const isDropped = last?.state === 'lost' && onCrash === 'retry' && attempts < maxAttempts
    const isExcused = isPaused || isRunning || !isAttended || wasCancelled(history, name, slot, attempts)
    if (isDropped && !isExcused) broken(`${slot} was lost and not retried.`)
  }
}

/** An operator, or a newer slot, has asked for its end since it was granted: it is not wanted any more. */
function wasCancelled(history: readonly Entry[], task: string, slot: number, attempt: number): boolean {
  const granted = history.findIndex(
    (entry) =>
      entry.kind === 'claim' && entry.task === task && entry.slot === slot && entry.attempt === attempt,
  )
  return history
    .slice(Math.max(granted, 0))
    .some((entry) => entry.kind === 'request' && entry.task === task && entry.what === 'cancel')
}

/** What `history()` tells, slot by slot, against the instants of the interval. */
function checkTold({ told, log, mark, everyMs }: TaskEnd, { manual }: Scene, broken: Broken): void {
  for (const { slot, after, gap } of log) {
    if (slot - after > everyMs && after % everyMs === 0 && gap === '')
      broken(`nothing says why what was due before ${slot} did not run.`)
  }
  const from = log.find(({ state }) => state === 'registered')?.slot
  if (from === undefined) return broken('nothing tells when it was registered.')
  const ofSchedule = told.filter(
    ({ slot, attempt, state }) => state !== 'registered' && !manual.has(`${slot}/${attempt}`),
  )
  const slots = new Set(ofSchedule.map(({ slot }) => slot))
  for (let slot = Math.floor(from / everyMs + 1) * everyMs; slot <= mark; slot += everyMs) {
    if (!slots.delete(slot)) broken(`history() does not know ${slot}.`)
  }
  if (slots.size > 0) broken(`history() knows ${[...slots].join(', ')}, which never were due.`)
}

/** Everything that was granted has a row, as long as the store keeps its records. */
function checkRuns({ name, log }: TaskEnd, history: readonly Entry[], broken: Broken): void {
  if (history.some((entry) => entry.kind === 'exception' && entry.what === 'lose-data')) return
  const rows = new Set(log.map(({ slot, attempt }) => `${slot}/${attempt}`))
  for (const entry of history) {
    if (entry.kind !== 'claim' || entry.task !== name || entry.attempt === 0) continue
    const row = `${entry.slot}/${entry.attempt}`
    if (!rows.has(row)) broken(`${row} was granted and has no row.`)
  }
}
