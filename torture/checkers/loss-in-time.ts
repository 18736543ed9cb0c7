import type { Evidence, Violation } from './checker.ts'
import { type Gap, gapsByWorker, lastWords } from './pauses.ts'

/** What a machine with more processes than processors takes to get from a timer to a line in a file. */
const toleranceMs = 25

/**
 * G3: a lease that was neither given back nor renewed is signalled as lost by its deadline, or in the first turn after a
 * pause of its process.
 */
export function lossInTime({ history }: Evidence): readonly Violation[] {
  const gaps = gapsByWorker(history)
  const watchedUntil = lastWords(history)
  const found: Violation[] = []
  for (const hold of history.holds) {
    const due = dueAt(hold.deadline, gaps.get(hold.by) ?? [])
    const end = Math.min(hold.letGoAt, watchedUntil.get(hold.by) ?? Infinity)
    if (end <= due || Math.min(hold.lostAt, hold.toldToStopAt) <= due) continue
    const when =
      hold.lostAt === Infinity ? 'never' : `${(hold.lostAt - hold.deadline).toFixed(1)} ms after it`
    found.push({
      checker: 'loss-in-time',
      what: `${hold.of}: ${hold.by} (fence ${hold.fence}) was to lose it by its deadline, and was told ${when}`,
      at: hold.deadline,
    })
  }
  return found
}

/** By when the signal has to have come: later than the deadline if the event loop did not turn then. */
function dueAt(deadline: number, gaps: readonly Gap[]): number {
  let due = deadline + toleranceMs
  for (const { from, to } of gaps)
    if (from <= due && to > deadline - toleranceMs) due = Math.max(due, to + toleranceMs)
  return due
}
