import { requestTimeoutMs } from '../life.ts'
import type { Checker, Violation } from './violation.ts'

/** G8: a release never throws, takes one request timeout at most, frees nobody else's lease, and replaces no result. */
export const harmlessRelease: Checker = (history) => {
  const violations: Violation[] = []
  const broken = (at: number, what: string): void => void violations.push({ promise: 'G8', at, what })
  for (const entry of history) {
    const { at } = entry
    if (entry.kind === 'error' && entry.during === 'release')
      broken(at, `${entry.by}: a release of ${entry.key} threw ${entry.message}`)
    if (entry.kind === 'released' && entry.tookMs > requestTimeoutMs + 1 && !entry.wasHeldUp)
      broken(at, `${entry.by}: a release of ${entry.key} took ${entry.tookMs} ms.`)
    if (entry.kind === 'freeing' && entry.hasHarmed)
      broken(at, `A release by ${entry.by} ended the lease of another on ${entry.key}.`)
    if (entry.kind === 'ran' && !entry.isOwnResult)
      broken(at, `${entry.by}: what came out of a run under ${entry.key} is not what went in.`)
  }
  return violations
}
