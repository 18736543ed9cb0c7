import type { Clocks } from '../history.ts'
import { requestTimeoutMs } from '../life.ts'
import type { Checker, EntryOf, Violation } from './violation.ts'

/** Comparisons of sums of fractions. */
const hair = 1e-6

/**
 * G3: nobody believes past the deadline that follows from the answers that reached it; a loss is signalled by then, or in
 * the first turn of a process that stood still; it is final, and the signal says the same as the lease.
 */
export const knownLoss: Checker = (history) => {
  const violations: Violation[] = []
  const deadlines = new Map<string, Clocks>()
  const toldLost = new Map<string, number>()
  const lost = new Set<string>()
  const broken = (at: number, what: string): void => void violations.push({ promise: 'G3', at, what })
  const checkSample = (entry: EntryOf<'sample'>): void => {
    const { at, by, key, fence, token, clocks, isHeld, isTold, isAborted, awakeForMs, slackMs } = entry
    const name = `${key}/${fence}`
    if (isHeld && pastBy(clocks, deadlines.get(token)) > hair)
      broken(at, `${by} believes in ${name} past its deadline.`)
    if (isHeld && lost.has(token)) broken(at, `${by} believes in ${name} again after its loss.`)
    if (isHeld && at > (toldLost.get(token) ?? Infinity))
      broken(at, `${by} believes in ${name}, although the store has told it of the loss.`)
    if (!isHeld && !isAborted)
      broken(at, `The signal of ${name} at ${by} is not aborted, and it is not held.`)
    const lateMs = pastBy(clocks, deadlines.get(token))
    if (!isHeld && !isTold && awakeForMs > slackMs && (slackMs === 0 || lateMs > slackMs))
      broken(at, `${by} was not told that it lost ${name}.`)
  }
  const checkLoss = (entry: EntryOf<'loss'>): void => {
    const { at, by, key, fence, token, clocks, awakeForMs, slackMs } = entry
    if (lost.has(token)) broken(at, `${by} was told twice that it lost ${key}/${fence}.`)
    lost.add(token)
    const lateMs = clocks.monotonic - (deadlines.get(token)?.monotonic ?? -Infinity)
    if (lateMs > slackMs + hair && awakeForMs > slackMs + hair)
      broken(at, `${by} was told ${lateMs} ms after its deadline that it lost ${key}/${fence}.`)
  }
  for (const entry of history) {
    if (entry.kind === 'told' && entry.outcome === 'held') {
      const { token, sentAt, forMs } = entry
      const deadline = deadlineOf(sentAt, forMs)
      const before = deadlines.get(token)
      if (before === undefined || deadline.monotonic > before.monotonic) deadlines.set(token, deadline)
    } else if (entry.kind === 'told' && entry.tookMs < requestTimeoutMs) {
      toldLost.set(entry.token, entry.at)
    } else if (entry.kind === 'sample') checkSample(entry)
    else if (entry.kind === 'loss') checkLoss(entry)
  }
  return violations
}

/** As it is promised: from just before the request was sent, less a margin of 1 %, at least 10 ms. */
function deadlineOf(sentAt: Clocks, forMs: number): Clocks {
  const trustedMs = forMs - Math.max(10, forMs / 100)
  return { monotonic: sentAt.monotonic + trustedMs, wall: sentAt.wall + trustedMs }
}

/** How long the deadline is past, by the clock that says so first; less than 0 before. */
function pastBy(clocks: Clocks, deadline: Clocks | undefined): number {
  if (deadline === undefined) return Infinity
  return Math.max(clocks.monotonic - deadline.monotonic, clocks.wall - deadline.wall)
}
