import type { Hold } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

/** How much longer than its holder the store may take a lease for held, and a machine to write down what it knows. */
const slackMs = 500

/**
 * G7: "held by another" is said only of a key that somebody may have held after it was asked for: a holder whose lease the
 * store had not seen end, or a call whose outcome nobody knows.
 */
export function honestNull({ history, ttlMs }: Evidence): readonly Violation[] {
  const longestTtl = 1.5 * ttlMs
  const byName = history.byName
  const asked = new Map(history.all('asked').map((line) => [`${line.by} ${line.ask}`, line]))
  const settled = new Map(history.all('settled').map((line) => [`${line.by} ${line.ask}`, line]))
  const died = new Map(history.all('ended').map(({ worker, at }) => [worker, at]))
  /** Calls that may have been granted without anybody knowing: until when the store may hold the key for them. */
  const unknown = new Map<string, { readonly by: string; readonly from: number; readonly to: number }[]>()
  for (const [name, { of, by, at }] of asked) {
    const outcome = settled.get(name)
    if (outcome?.outcome === 'held' || outcome?.outcome === 'granted') continue
    // What its client has queued may be carried out for as long as the process lives.
    const to = (died.get(by) ?? Infinity) + longestTtl + slackMs
    unknown.set(of, [...(unknown.get(of) ?? []), { by, from: at, to }])
  }
  const found: Violation[] = []
  for (const [name, { of, by, at }] of settled) {
    if (settled.get(name)?.outcome !== 'held') continue
    const from = asked.get(name)?.at ?? at
    const mayBeHeld =
      (byName.get(of) ?? []).some((hold) => hold.askedAt <= at && heldUntil(hold, longestTtl) >= from) ||
      (unknown.get(of) ?? []).some((call) => call.from <= at && call.to >= from)
    if (mayBeHeld) continue
    found.push({
      checker: 'honest-null',
      what: `${of}: ${by} was told that another held it, and nobody did`,
      at,
    })
  }
  return found
}

/** By its own account of what the store confirmed. */
function heldUntil({ deadline, givenBackAt, releaseOutcome }: Hold, longestTtl: number): number {
  return releaseOutcome === 'released' ? givenBackAt + slackMs : deadline + longestTtl + slackMs
}
