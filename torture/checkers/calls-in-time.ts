import type { Evidence, Violation } from './checker.ts'
import { type Gap, gapsByWorker, pausedMs } from './pauses.ts'

/** What a machine with more processes than processors takes on top, of several turns. */
const slackMs = 500

/** A call settles in the time that it was given: a wait at its end, plus a request; a release within one request (G8). */
export function callsInTime(evidence: Evidence): readonly Violation[] {
  const gaps = gapsByWorker(evidence.history)
  return [...waitsInTime(evidence, gaps), ...releasesInTime(evidence, gaps)]
}

type Gaps = ReadonlyMap<string, readonly Gap[]>

function waitsInTime({ history, requestTimeoutMs }: Evidence, gaps: Gaps): readonly Violation[] {
  const found: Violation[] = []
  const settledAt = new Map(history.all('settled').map(({ by, ask, at }) => [`${by} ${ask}`, at]))
  const watchedUntil = new Map(history.all('turn').map(({ by, at }) => [by, at]))
  for (const { by, of, ask, waitMs, at } of history.all('asked')) {
    if (waitMs === null) continue
    // One that is still under way when its process is last heard of is judged up to there.
    const settled = settledAt.get(`${by} ${ask}`)
    const to = settled ?? watchedUntil.get(by) ?? at
    const tookMs = to - at - pausedMs(gaps.get(by), at, to)
    if (tookMs <= waitMs + requestTimeoutMs + slackMs) continue
    const what = `${of}: ${by} was ready to wait for ${waitMs} ms, and ${settled === undefined ? 'had no answer' : 'was answered'} after ${tookMs.toFixed(0)} ms`
    found.push({ checker: 'wait-in-time', what, at })
  }
  return found
}

function releasesInTime({ history, requestTimeoutMs }: Evidence, gaps: Gaps): readonly Violation[] {
  const found: Violation[] = []
  for (const { by, of, fence, tookMs, at } of history.all('given-back')) {
    const ownMs = tookMs - pausedMs(gaps.get(by), at - tookMs, at)
    if (ownMs <= requestTimeoutMs + slackMs) continue
    const what = `${of}: ${by} (fence ${fence}) waited ${ownMs.toFixed(0)} ms for its release`
    found.push({ checker: 'release-in-time', what, at })
  }
  return found
}
