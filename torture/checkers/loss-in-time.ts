import type { History } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

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

/** When each worker had closed, or wrote for the last time before it was killed: it may have been paused since. */
function lastWords({ lines }: History): ReadonlyMap<string, number> {
  return new Map(lines.map(({ by, at }) => [by, at]))
}

interface Gap {
  readonly from: number
  readonly to: number
}

/** By when the signal has to have come: later than the deadline if the event loop did not turn then. */
function dueAt(deadline: number, gaps: readonly Gap[]): number {
  let due = deadline + toleranceMs
  for (const { from, to } of gaps)
    if (from <= due && to > deadline - toleranceMs) due = Math.max(due, to + toleranceMs)
  return due
}

function gapsByWorker(history: History): ReadonlyMap<string, readonly Gap[]> {
  const gaps = new Map<string, Gap[]>()
  for (const { by, from, at } of history.all('gap')) gaps.set(by, [...(gaps.get(by) ?? []), { from, to: at }])
  // A process that is killed in the first turn after a pause has not written the pause down.
  const turned = new Map<string, number>()
  for (const { by, at, is } of history.lines) if (is === 'turn' || is === 'gap') turned.set(by, at)
  const last = lastWords(history)
  for (const { worker, cause } of history.all('ended')) {
    if (cause !== 'killed') continue
    const gap = { from: turned.get(worker) ?? 0, to: last.get(worker) ?? 0 }
    gaps.set(worker, [...(gaps.get(worker) ?? []), gap])
  }
  return gaps
}
