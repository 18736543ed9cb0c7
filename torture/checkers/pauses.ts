import type { History } from '../history/read-history.ts'

/** A time in which a process did not run, or ran only one turn. */
export interface Gap {
  readonly from: number
  readonly to: number
}

/** When the event loop of each process did not turn. */
export function gapsByWorker(history: History): ReadonlyMap<string, readonly Gap[]> {
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

/** When each worker had closed, or wrote for the last time before it was killed: it may have been paused since. */
export function lastWords({ lines }: History): ReadonlyMap<string, number> {
  return new Map(lines.map(({ by, at }) => [by, at]))
}

/** How much of the time between two moments a process did not run. */
export function pausedMs(gaps: readonly Gap[] | undefined, from: number, to: number): number {
  let paused = 0
  for (const gap of gaps ?? []) paused += Math.max(0, Math.min(gap.to, to) - Math.max(gap.from, from))
  return paused
}
