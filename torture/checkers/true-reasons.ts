import { editedTask, taskPlans } from '../task-plans.ts'
import type { Evidence, Violation } from './checker.ts'
import { gapsByWorker } from './pauses.ts'

/** A stretch in which a worker ran, and the store answered whatever it asked for. */
interface Healthy {
  readonly by: string
  readonly from: number
  readonly to: number
}

/** Clients that were cut off, and claims that hung, take that long to come round. */
const recoveryMs = 4_000
/** A node whose loop turns at least that often claims a slot before the next one of any task is due. */
const longestTurnMs = 300
/** A node that was granted the slot before may still be busy telling the store. */
const claimMs = 1_500

/**
 * G6: "missed, because nobody was there" is true: no worker was there that ran all the time around the slot, and whose
 * own questions the store answered.
 */
export function trueReasons(evidence: Evidence): readonly Violation[] {
  const healthy = healthyStretches(evidence)
  const found: Violation[] = []
  for (const [task, entries] of evidence.tasks) {
    if (task === editedTask) continue
    const { ttl } = taskPlans[task as keyof typeof taskPlans]
    for (const { slot, state, reason } of entries) {
      if (state !== 'missed' || reason !== 'down') continue
      const at = slot.getTime() - evidence.wallMinusBoot
      const witness = healthy.find(({ from, to }) => from + recoveryMs < at && to > at + ttl + claimMs)
      if (witness === undefined) continue
      const what = `${task}: slot ${slot.getTime()} is "missed: down", and ${witness.by} was there`
      found.push({ checker: 'true-reasons', what, at })
    }
  }
  return found
}

/** Between its errors, its pauses and the faults that struck it. Leasing and claiming use the same store and client. */
function healthyStretches({ history, isFile }: Evidence): readonly Healthy[] {
  const gaps = gapsByWorker(history)
  const closedAt = new Map(history.all('closed').map(({ by, at }) => [by, at]))
  const stretches: Healthy[] = []
  for (const { by, place, at } of history.all('begun')) {
    const turns = history.all('turn').filter((turn) => turn.by === by)
    const last = Math.min(turns.at(-1)?.at ?? at, closedAt.get(by) ?? Infinity)
    const troubles = [
      ...(gaps.get(by) ?? []).filter(({ from, to }) => to - from > longestTurnMs),
      ...history
        .all('settled')
        .filter((call) => call.by === by && call.outcome !== 'granted' && call.outcome !== 'held')
        .map((call) => ({ from: call.at, to: call.at })),
      ...history.faults.filter((fault) => fault.place === undefined || fault.place === place || isFile),
      { from: last, to: Infinity },
    ].toSorted((a, b) => a.from - b.from)
    let from = at
    for (const trouble of troubles) {
      if (trouble.from > from) stretches.push({ by, from, to: Math.min(trouble.from, last) })
      from = Math.max(from, trouble.to)
    }
  }
  return stretches
}
