import { beliefEnd, type Hold } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

/**
 * G2: no fence is issued twice, and grants that were believed in carry rising fences. (A grant whose deadline was over
 * when its holder first looked may have been written down after its successor's.) Who asked after another had been
 * granted gets a greater one whatever happened to the record, unless the store's clock went back with it.
 */
export function fenceOrder({ history }: Evidence): readonly Violation[] {
  const found: Violation[] = []
  for (const [of, holds] of history.byName) {
    const seen = new Map<number, string>()
    const highestUpTo = risingMaxima(holds)
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
      const known = highestUpTo.findLast((one) => one.from < hold.askedAt)
      if (known !== undefined && fence < known.fence && !clockStepped(history, from)) {
        const what = `${of}: ${by} asked after ${known.by} had fence ${known.fence}, and got ${fence}`
        found.push({ checker: 'fence-order', what, at: from })
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

function clockStepped({ exceptions }: Evidence['history'], before: number): boolean {
  return exceptions.some(({ kind, at }) => kind === 'server-clock' && at < before)
}

/** The holds that had the greatest fence so far, in the order of their grants. */
function risingMaxima(holds: readonly Hold[]): readonly Hold[] {
  const maxima: Hold[] = []
  for (const hold of holds) if (hold.fence > (maxima.at(-1)?.fence ?? 0)) maxima.push(hold)
  return maxima
}
