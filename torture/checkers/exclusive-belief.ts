import { beliefEnd, type Hold } from '../history/read-history.ts'
import { type ExceptionKind, exceptionKinds } from '../history/records.ts'
import type { Evidence, Violation } from './checker.ts'

/** Two holders of one name, for so long. */
export interface Overlap {
  readonly first: Hold
  readonly second: Hold
  readonly from: number
  readonly ms: number
  /** The named exception that explains it. */
  readonly exception: ExceptionKind | null
}

/** G1, of leases and of runs: the intervals from grant to min(deadline, release, loss, death) do not overlap. */
export function exclusiveBelief(evidence: Evidence): readonly Violation[] {
  return overlaps(evidence)
    .filter(({ exception }) => exception === null)
    .map(({ first, second, from, ms }) => ({
      checker: first.of.startsWith('task:') ? 'no-overlap-of-runs' : 'exclusive-belief',
      what: `${first.of}: ${first.by} (fence ${first.fence}) and ${second.by} (fence ${second.fence}) for ${ms.toFixed(3)} ms`,
      at: from,
    }))
}

/** In the named exceptions a holder is told at its next renewal, or at its deadline: an overlap ends within the longest ttl. */
export function exceptionBound(evidence: Evidence): readonly Violation[] {
  const longestTtl = 1.5 * evidence.ttlMs
  return overlaps(evidence)
    .filter(({ exception, ms }) => exception !== null && ms > longestTtl)
    .map(({ first, second, from, ms, exception }) => ({
      checker: 'exception-bound',
      what: `${first.of}: after a ${exception} ${first.by} went on believing for ${ms.toFixed(0)} ms beside ${second.by}`,
      at: from,
    }))
}

/** For how long named exceptions made two believe, by kind: reported, and no violation. */
export function excusedOverlapMs(evidence: Evidence): Record<ExceptionKind, number> {
  const sums = Object.fromEntries(exceptionKinds.map((kind) => [kind, 0])) as Record<ExceptionKind, number>
  for (const { exception, ms } of overlaps(evidence)) if (exception !== null) sums[exception] += ms
  return sums
}

export function overlaps({ history, ttlMs }: Evidence): readonly Overlap[] {
  const found: Overlap[] = []
  for (const holds of history.byName.values()) {
    const believed = holds.filter((hold) => beliefEnd(hold) > hold.from)
    let longest: Hold | undefined
    for (const second of believed) {
      if (longest !== undefined && beliefEnd(longest) > second.from) {
        const to = Math.min(beliefEnd(longest), beliefEnd(second))
        // Either may have been granted a ttl before its holder wrote that down, and the later one first.
        const granted = longest.from - ttlMs
        const exception = history.exceptionBetween(granted, second.from, second.of)
        found.push({
          first: longest,
          second,
          from: second.from,
          ms: to - second.from,
          exception: exception?.kind ?? null,
        })
      }
      if (longest === undefined || beliefEnd(second) > beliefEnd(longest)) longest = second
    }
  }
  return found
}
