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
  const wanted = new Set(
    history
      .all('asked')
      .filter(({ at }) => at >= calm.at)
      .map(({ of }) => of),
  )
  const granted = new Set(history.holds.filter(({ from }) => from >= calm.at).map(({ of }) => of))
  for (const of of wanted) {
    if (granted.has(of) || !of.startsWith('lock:hot')) continue
    found.push({
      checker: 'liveness',
      what: `${of}: asked for after the faults, and never granted`,
      at: calm.at,
    })
  }
  return found
}
