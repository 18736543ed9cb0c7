import type { RunHistoryEntry } from 'leasehold'
import { editedTask } from '../task-plans.ts'
import type { Evidence, Violation } from './checker.ts'
import { noneEarly, oncePerSlot, recordsAgree, type Run, runsOf } from './slots.ts'

/**
 * G5 and G6 while half of the fleet runs another edition of a schedule: one edition at a time fires, none comes back once
 * another has taken its place, nothing of the past fires, and each edit is in the history as the reason of what it closed.
 */
export function editedSchedule(evidence: Evidence): readonly Violation[] {
  const entries = evidence.tasks.get(editedTask) ?? []
  const runs = runsOf(evidence, editedTask)
  return [
    ...oncePerSlot(evidence, editedTask, runs),
    ...noneEarly(runs),
    ...recordsAgree(evidence, editedTask, runs, entries),
    ...oneEditionWins(evidence, runs, entries),
    ...nothingOfThePast(evidence, runs),
  ]
}

/** In the order of the grants, which is that of the fences. */
function oneEditionWins(
  { history }: Evidence,
  runs: readonly Run[],
  entries: readonly RunHistoryEntry[],
): readonly Violation[] {
  const found: Violation[] = []
  const editions = editionsByWorker({ history })
  const over = new Set<number>()
  let before: Run | undefined
  for (const run of runs.toSorted((a, b) => a.fence - b.fence)) {
    const edition = editions.get(run.by) ?? 0
    const former = before === undefined ? edition : (editions.get(before.by) ?? 0)
    // A store that forgot the task may get to know an old edition first.
    const exception = history.exceptionBetween((before ?? run).from - 2_000, run.from, run.of)
    if (exception !== undefined) over.clear()
    else if (over.has(edition)) {
      const what = `edition ${edition} ran slot ${run.run.slot} on ${run.by} after edition ${former} had taken its place`
      found.push({ checker: 'edited-schedule', what, at: run.from })
    } else if (before !== undefined && edition !== former && !isExplained(before, run, entries, history)) {
      const what = `no edit between slot ${before.run.slot} of edition ${former} and slot ${run.run.slot} of edition ${edition}`
      found.push({ checker: 'edited-schedule', what, at: run.from })
    }
    if (edition !== former) over.add(former)
    before = run
  }
  return found
}

/** Whether the history has the edit between two runs. One in the very millisecond of a slot closes nothing. */
function isExplained(
  before: Run,
  after: Run,
  entries: readonly RunHistoryEntry[],
  history: Evidence['history'],
): boolean {
  // A store that was emptied later has forgotten its log as well.
  if (history.exceptionBetween(before.from, Infinity, before.of) !== undefined) return true
  return entries.some(({ slot, reason, startedAt }) => {
    const at = slot.getTime()
    if (at < before.run.slot || at > after.run.slot) return false
    return reason === 'edited' || (at < after.run.slot && startedAt.getTime() - at < 2)
  })
}

/** No edition fires a slot that was due before there was anybody who knew of it. */
function nothingOfThePast({ history }: Evidence, runs: readonly Run[]): readonly Violation[] {
  const knownSince = new Map<number, number>()
  for (const { edition, wall } of history.all('begun')) {
    knownSince.set(edition, Math.min(wall, knownSince.get(edition) ?? Infinity))
  }
  const editions = editionsByWorker({ history })
  return runs
    .filter(({ by, run }) => run.slot < (knownSince.get(editions.get(by) ?? 0) ?? 0))
    .map(({ by, run, from }) => ({
      checker: 'edited-schedule',
      what: `${by} ran slot ${run.slot}, which was over when the first process with its edition began`,
      at: from,
    }))
}

function editionsByWorker({ history }: Pick<Evidence, 'history'>): ReadonlyMap<string, number> {
  return new Map(history.all('begun').map(({ by, edition }) => [by, edition]))
}
