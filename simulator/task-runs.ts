import type { Entry } from './history.ts'
import type { EntryOf } from './checkers/violation.ts'

/** One run as the store granted it, until it was completed, lapsed, or another run of the task was granted. */
export interface GrantedRun {
  readonly claim: EntryOf<'claim'>
  /** Where its grant stands in the history. */
  readonly index: number
  /** The request that it was made for, also by an attempt before it; null for a slot of the schedule. */
  readonly order: string | null
  /** `Infinity`: it had not ended. */
  readonly endedAt: number
  /** When the store took its outcome, also where its lease had lapsed by then; `-Infinity`: it did not. */
  readonly completedAt: number
  readonly isTakeover: boolean
}

/** The runs of a task, in order. Asked again under its token, a grant is the same one. */
export function runsOf(history: readonly Entry[], task: string): readonly GrantedRun[] {
  const runs: GrantedRun[] = []
  const lapses = lapsesOf(history)
  const end = (at: number): void => {
    const last = runs.at(-1)
    if (last !== undefined) runs[runs.length - 1] = { ...last, endedAt: Math.min(last.endedAt, at) }
  }
  for (const [index, entry] of history.entries()) {
    if (entry.kind === 'claim' && entry.task === task && entry.fence > 0) {
      const before = runs.at(-1)
      if (runs.some(({ claim }) => claim.token === entry.token && claim.fence === entry.fence)) continue
      end(entry.at)
      const isTakeover = entry.outcome === 'takeover'
      const order = isTakeover ? (before?.order ?? null) : entry.order
      runs.push({ claim: entry, index, order, endedAt: Infinity, completedAt: -Infinity, isTakeover })
    } else if (entry.kind === 'completion' && entry.task === task && entry.answer === 'completed') {
      const last = runs.at(-1)
      if (last?.claim.fence !== entry.fence) continue
      runs[runs.length - 1] = { ...last, endedAt: Math.min(last.endedAt, entry.at), completedAt: entry.at }
    }
  }
  return runs.map((run) => ({
    ...run,
    endedAt: Math.min(run.endedAt, lapses.get(run.claim.token) ?? Infinity),
  }))
}

/** When the lease of each token lapsed, by the last word of the store. */
function lapsesOf(history: readonly Entry[]): ReadonlyMap<string, number> {
  const lapses = new Map<string, number>()
  for (const entry of history) {
    if (entry.kind === 'grant' || (entry.kind === 'renewal' && entry.outcome === 'held'))
      lapses.set(entry.token, Math.max(lapses.get(entry.token) ?? 0, entry.at + entry.forMs))
  }
  return lapses
}

/** Whether one of the runs was under way at some moment of this time. */
export function isBusyWithin(runs: readonly GrantedRun[], from: number, to: number): boolean {
  return runs.some(({ claim, endedAt }) => claim.at <= to && endedAt >= from)
}

/** The same, where what was completed after its lapse was under way until then. */
export function isUnfinishedWithin(runs: readonly GrantedRun[], from: number, to: number): boolean {
  return runs.some(
    ({ claim, endedAt, completedAt }) => claim.at <= to && Math.max(endedAt, completedAt) >= from,
  )
}
