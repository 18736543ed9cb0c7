import { beliefEnd, type History, type Hold } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

/** How long the store, the reconnecting clients and the machine may take on top of a ttl. */
const slackMs = 3_000

/**
 * G4: once the faults are over each key that is wanted is granted within a bound, and what the dead left behind is free a
 * ttl after the last of them.
 */
export function liveness({ history, ttlMs }: Evidence): readonly Violation[] {
  const found: Violation[] = []
  for (const { of, outcome, tookMs, at } of history.all('probe')) {
    if (outcome === 'granted' && tookMs <= ttlMs * 1.5 + slackMs) continue
    const what = `${of}: after all had ended a stranger got "${outcome}" in ${tookMs.toFixed(0)} ms`
    found.push({ checker: 'liveness', what, at })
  }
  const [calm] = history.all('calm')
  if (calm === undefined) return found
  const wanted = history.all('asked').filter(({ of, at }) => at >= calm.at && of.startsWith('lock:hot'))
  const stalledMs = longestStall(history, calm.at)
  for (const of of new Set(wanted.map((asked) => asked.of))) {
    const until = Math.max(...wanted.filter((asked) => asked.of === of).map(({ at }) => at))
    const freeMs = longestFree(history.byName.get(of) ?? [], calm.at, until)
    if (freeMs <= ttlMs + slackMs + stalledMs) continue
    const what = `${of}: wanted, and held by nobody for ${freeMs.toFixed(0)} ms after the faults`
    found.push({ checker: 'liveness', what, at: calm.at })
  }
  return found
}

/** The longest time between two moments in which nobody believed to hold it. */
function longestFree(holds: readonly Hold[], from: number, to: number): number {
  let longest = 0
  let heldUntil = from
  for (const hold of holds) {
    if (hold.from > to) break
    longest = Math.max(longest, hold.from - heldUntil)
    heldUntil = Math.max(heldUntil, beliefEnd(hold))
  }
  return Math.max(longest, to - heldUntil)
}

/** For how long the worst off worker got no processor, on a machine that has too few: nobody can ask then. */
function longestStall(history: History, since: number): number {
  const stalls = new Map<string, number>()
  for (const { by, from, at } of history.all('gap')) {
    if (at > since && at - from > 100) stalls.set(by, (stalls.get(by) ?? 0) + at - Math.max(from, since))
  }
  return Math.max(0, ...stalls.values())
}
