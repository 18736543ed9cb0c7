import { wasClockSetBack } from './named-exceptions.ts'
import type { Checker, Violation } from './violation.ts'

/** G4: the store never keeps a key for longer than was asked for, and once the faults have ended each can be had. */
export const noOutage: Checker = (history) => {
  const violations: Violation[] = []
  const longest = new Map<string, number>()
  for (const [index, entry] of history.entries()) {
    if (entry.kind === 'grant' || (entry.kind === 'renewal' && entry.outcome === 'held')) {
      const { at, key, token, forMs, ttlMs } = entry
      const askedMs = Math.max(longest.get(token) ?? 0, Math.ceil(ttlMs))
      longest.set(token, askedMs)
      if (forMs > askedMs && !wasClockSetBack(history, index))
        violations.push({
          promise: 'G4',
          at,
          what: `${key} is closed for ${forMs} ms, and ${askedMs} were asked for.`,
        })
    } else if (entry.kind === 'inheritance' && !entry.isDone) {
      const { at, key, boundMs } = entry
      violations.push({
        promise: 'G4',
        at,
        what: `${key} could not be had within ${boundMs} ms after all faults.`,
      })
    }
  }
  return violations
}
