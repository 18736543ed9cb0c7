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
      runs.push({ claim: entry, index, order, endedAt: Infinity, isTakeover })
    } else if (entry.kind === 'completion' && entry.task === task && entry.answer === 'completed') {
      if (runs.at(-1)?.claim.fence === entry.fence) end(entry.at)
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

/** The same, or at some moment of this time a run that had lapsed was still to be retried. */
export function isUnfinishedWithin(runs: readonly GrantedRun[], from: number, to: number): boolean {
  return runs.some(({ claim, endedAt }, index) => {
    const next = runs[index + 1]
    const until = next?.isTakeover === true ? Math.max(endedAt, next.claim.at) : endedAt
    return claim.at <= to && until >= from
  })
}
