import type { Entry } from '../history.ts'
import { couldFreeEarly } from './named-exceptions.ts'
import type { EntryOf, Violation } from './violation.ts'

export interface Overlaps {
  readonly violations: readonly Violation[]
  /** For how long two believed, in cases that a named exception explains. */
  readonly overlapMs: number
}

/**
 * G1: when a key is granted, nobody else believes to hold it. Whoever was granted it before is asked at that moment; and
 * an older grant that reaches its holder late is not believed any more.
 */
export function exclusiveBelief(history: readonly Entry[]): Overlaps {
  const violations: Violation[] = []
  let overlapMs = 0
  /** The grants of each key by fence, and where they stand in the history. */
  const grants = new Map<string, Map<number, number>>()
  const latest = new Map<string, { readonly fence: number; readonly index: number }>()
  const found = (entry: EntryOf<'sample' | 'belief'>, index: number): void => {
    const { key, fence, by, at } = entry
    const newest = latest.get(key)
    if (newest === undefined || newest.fence === fence || !entry.isHeld) return
    const ownGrant = grants.get(key)?.get(fence) ?? 0
    // A grant that is older in the store, whatever the fences say: those are checked elsewhere.
    if (ownGrant > newest.index) return
    if (couldFreeEarly(history, key, ownGrant, newest.index)) {
      overlapMs += endOfBelief(history, entry, index) - at
      return
    }
    const what = `${by} believes to hold ${key}/${fence}, which was granted to another with ${newest.fence}.`
    violations.push({ promise: 'G1', at, what })
  }
  for (const [index, entry] of history.entries()) {
    if (entry.kind === 'grant') {
      const { key, fence, isAgain } = entry
      if (isAgain && latest.get(key)?.fence === fence) continue
      const ofKey = grants.get(key) ?? new Map<number, number>()
      grants.set(key, ofKey.set(fence, index))
      latest.set(key, { fence, index })
    } else if (entry.kind === 'sample' || entry.kind === 'belief') {
      found(entry, index)
    }
  }
  return { violations, overlapMs }
}

function endOfBelief(history: readonly Entry[], belief: EntryOf<'sample' | 'belief'>, index: number): number {
  for (let next = index + 1; next < history.length; next++) {
    const entry = history[next] as Entry
    const isOver =
      ((entry.kind === 'end' || entry.kind === 'loss') && entry.token === belief.token) ||
      (entry.kind === 'crashes' && entry.by === belief.by) ||
      // The next grant counts what is left of it.
      (entry.kind === 'sample' && entry.token === belief.token)
    if (isOver) return entry.at
  }
  return belief.at
}
