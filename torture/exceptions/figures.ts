import { allCheckers } from '../checkers/all-checkers.ts'
import type { Evidence, Violation } from '../checkers/checker.ts'
import { type Overlap, overlaps } from '../checkers/exclusive-belief.ts'
import { beliefEnd, History } from '../history/read-history.ts'
import type { Measured, Struck } from './measure.ts'

/** What followed from striking a store so many times. */
export interface Figures {
  readonly strikes: number
  /** Strikes that took acknowledged writes with them, and how many bytes of the store's log, in the middle. */
  readonly withLoss: number
  readonly lostBytes: number
  /** Leases and runs whose grant was acknowledged while nothing reached the replica. */
  readonly grantsWithheld: number
  readonly switchedAfterMs: Spread
  /** Two holders of one key or task at a time, by the named exception. */
  readonly leaseOverlaps: number
  readonly runOverlaps: number
  readonly strikesWithOverlap: number
  readonly overlapMs: Spread & { readonly total: number }
  /** How the first of two holders ended: told by the store, by its deadline, or by letting go unawares. */
  readonly firstHolder: { readonly gone: number; readonly expired: number; readonly letGo: number }
  /** From the end of one who did not let go to the grant of the next, where they did not overlap. */
  readonly lowestMarginMs: number | null
  readonly grants: number
  readonly runs: number
  /** Grants whose fence was not greater than that of a grant which its holder had seen before, and by how much at most. */
  readonly fencesNotRising: number
  readonly fencesFellByMs: number
  /** Attempts at a slot that were begun twice, and runs that the store knows nothing of. */
  readonly slotsBegunTwice: number
  readonly runsForgotten: number
  /** Slots that are recorded as missed for a reason that is not the true one. */
  readonly untrueReasons: number
  /** Stale writes that the fenced resource refused, and accepted ones that it lost. */
  readonly refusedWrites: number
  readonly lostWrites: number
  readonly losses: number
}

interface Spread {
  readonly median: number
  readonly max: number
}

/** What such a strike may do to whatever it hits; everything else is a violation whenever it happens. */
function mayDo({ steppedMs, splitMs }: Struck): readonly string[] {
  // Slots that a clock passed over are missed although everybody was there; and by one that is ahead, slots are early.
  if (steppedMs !== 0) return steppedMs > 0 ? ['true-reasons', 'no-slot-early'] : ['true-reasons']
  // What was decided and forgotten is decided again: as a run, or as missed.
  const again = ['once-per-slot', 'records-agree', 'true-reasons']
  // Two stores give out fences by clocks of their own; which of two was first is a matter of who looks.
  return splitMs > 0 ? [...again, 'fence-order'] : again
}

export function figuresOf({ evidence, strikes }: Measured): Figures {
  const { history } = evidence
  const strict = judged(evidence)
  const count = (checker: string): number => strict.filter((each) => each.checker === checker).length
  const both = overlaps(evidence)
  const overlapMs = both.map(({ ms }) => ms)
  const ended = both.map(({ first }) => (first.letGoAt <= first.lostAt ? 'letGo' : first.lossReason))
  return {
    strikes: strikes.length,
    withLoss: strikes.filter(({ lostBytes }) => lostBytes > 0).length,
    lostBytes: spread(strikes.map(({ lostBytes }) => lostBytes)).median,
    grantsWithheld: history.holds.filter(({ from }) =>
      strikes.some((strike) => from >= strike.from && from < strike.from + strike.withheldMs),
    ).length,
    switchedAfterMs: spread(strikes.map(({ switchedAfterMs }) => switchedAfterMs)),
    leaseOverlaps: both.filter(({ first }) => first.run === null).length,
    runOverlaps: both.filter(({ first }) => first.run !== null).length,
    strikesWithOverlap: strikes.filter((strike) =>
      both.some(({ from }) => from >= strike.from && from <= strike.to),
    ).length,
    overlapMs: { ...spread(overlapMs), total: Math.round(overlapMs.reduce((sum, ms) => sum + ms, 0)) },
    firstHolder: {
      gone: ended.filter((reason) => reason === 'gone').length,
      expired: ended.filter((reason) => reason === 'expired' || reason === 'LeaseLostError').length,
      letGo: ended.filter((reason) => reason === 'letGo').length,
    },
    lowestMarginMs: lowestMargin(evidence, both),
    grants: history.holds.filter(({ run }) => run === null).length,
    runs: history.holds.filter(({ run }) => run !== null).length,
    fencesNotRising: count('fence-order'),
    fencesFellByMs: deepestFall(history),
    slotsBegunTwice: count('once-per-slot'),
    runsForgotten: count('records-agree'),
    untrueReasons: count('true-reasons'),
    refusedWrites: history.all('resource').filter(({ verb, accepted }) => verb === 'write' && !accepted)
      .length,
    lostWrites: count('fenced-resource'),
    losses: history.all('lost').length,
  }
}

/** What no named exception explains, and overlaps that outlasted what they may. */
export function violationsOf({ evidence, strikes }: Measured): readonly Violation[] {
  const unexplained = judged(evidence).filter(
    ({ checker, at }) => !strikes.some((strike) => covers(strike, at) && mayDo(strike).includes(checker)),
  )
  const tooLong = overlaps(evidence)
    .filter(({ from, ms }) => {
      const struck = strikes.find((strike) => from >= strike.from && from <= strike.to)
      // Until the old primary is silent, and from then on a lease that was extended to one and a half ttls.
      return ms > 1.5 * evidence.ttlMs + (struck?.splitMs ?? 0)
    })
    .map(({ first, ms, from }) => ({
      checker: 'exception-bound',
      what: `${first.of}: ${first.by} went on believing for ${ms.toFixed(0)} ms beside another`,
      at: from,
    }))
  return [...unexplained, ...tooLong].toSorted((a, b) => a.at - b.at)
}

/**
 * All checkers: that of exclusive belief knows of the exceptions, all others are told of none. So fences have to rise and
 * the fenced resource to keep its writes through whatever happened.
 */
function judged(evidence: Evidence): readonly Violation[] {
  const lines = evidence.history.lines.filter((line) => line.is !== 'fault' || line.exception === undefined)
  const untold = { ...evidence, history: new History(lines) }
  const belief = new Set(['exclusive-belief', 'no-overlap-of-runs', 'exception-bound'])
  return [
    ...allCheckers.flatMap((check) => check(untold)).filter(({ checker }) => !belief.has(checker)),
    ...allCheckers
      .flatMap((check) => check(evidence))
      .filter(({ checker }) => checker === 'exclusive-belief' || checker === 'no-overlap-of-runs'),
  ]
}

/** Whether something of that moment, by the host's clock, can come from that strike. */
function covers({ from, to, steppedMs }: Struck, at: number): boolean {
  return at >= from - 1_000 && at <= to + Math.max(0, steppedMs)
}

/** In milliseconds of the clock that is in a fence. */
function deepestFall({ byName }: History): number {
  let deepest = 0
  for (const holds of byName.values()) {
    let highest = 0
    for (const hold of holds.filter((each) => beliefEnd(each) > each.from)) {
      deepest = Math.max(deepest, (highest - hold.fence) / 1_000)
      highest = Math.max(highest, hold.fence)
    }
  }
  return Math.round(deepest * 10) / 10
}

function lowestMargin({ history }: Evidence, both: readonly Overlap[]): number | null {
  const overlapping = new Set(both.map(({ second }) => second))
  let lowest: number | null = null
  for (const holds of history.byName.values()) {
    for (const [index, hold] of holds.entries()) {
      const next = holds[index + 1]
      const end = beliefEnd(hold)
      if (next === undefined || overlapping.has(next) || hold.letGoAt === end) continue
      const margin = next.from - end
      if (margin >= 0 && (lowest === null || margin < lowest)) lowest = margin
    }
  }
  return lowest === null ? null : Math.round(lowest * 10) / 10
}

function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
    max: Math.round(sorted.at(-1) ?? 0),
  }
}
