import { beliefEnd } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

/**
 * G2: no fence is issued twice, and grants that were believed in carry rising fences. (A grant whose deadline was over
 * when its holder first looked may have been written down after its successor's.)
 */
export function fenceOrder({ history }: Evidence): readonly Violation[] {
  const found: Violation[] = []
  for (const [of, holds] of history.byName) {
    const seen = new Map<number, string>()
    let highest = { fence: 0, from: -Infinity }
    for (const hold of holds) {
      const { fence, by, from } = hold
      const other = seen.get(fence)
      if (other !== undefined) {
        found.push({
          checker: 'fence-order',
          what: `${of}: ${other} and ${by} both got fence ${fence}`,
          at: from,
        })
      }
      seen.set(fence, by)
      if (!Number.isSafeInteger(fence) || fence <= 0) {
        found.push({ checker: 'fence-order', what: `${of}: ${by} got ${fence}`, at: from })
      }
      if (beliefEnd(hold) <= from) continue
      if (fence < highest.fence && history.exceptionBetween(highest.from - 5_000, from, of) === undefined) {
        const what = `${of}: ${by} got fence ${fence} after ${highest.fence} had been granted`
        found.push({ checker: 'fence-order', what, at: from })
      }
      if (fence > highest.fence) highest = hold
    }
  }
  return found
}
