import { createHash } from 'node:crypto'
import { type Schedule, slotsBefore } from './schedule.ts'

/** What is done about slots that were not claimed in time. */
export interface SlotPolicies {
  readonly catchUp: 'none' | 'latest' | 'all'
  /** With `latest` and `all`: how old a missed slot may be and still run. */
  readonly catchUpWindowMs: number
  /** With `all`: the most slots that may be waiting; older ones are missed. */
  readonly catchUpMax: number
  /** Up to this age a slot is merely late, and runs under any policy. */
  readonly startDeadlineMs: number
  /** Each slot is claimed so much later at most, by its hash. */
  readonly jitterMs: number
}

/** What there is to do about a task's slots. */
export type SlotPlan =
  /** Nothing before this instant; `Infinity`: nothing ever. */
  | { readonly kind: 'wait'; readonly until: number }
  /** Claim this slot: to run it, or to decide that it was missed. */
  | { readonly kind: 'claim'; readonly slot: number; readonly decide: 'run' | 'miss' }

/** Why a slot that nobody claimed did not run: no node was there, or none reached the store. */
export const gapReason = 'down'
/** Why a slot was decided as missed: found after its start deadline, with nothing to catch up. */
export const lateReason = 'late'
/** Why a run that an operator asked for took place. */
export const manualReason = 'manual'
/** Why a slot that waited for an earlier run was decided as missed: the next one came due. */
export const overtakenReason = 'overlap'

/**
 * Which slot comes next: the newest due one, whether one slot was missed or a thousand, since the mark that the claim
 * names accounts for those before it; with `catchUp: 'all'` the oldest one that is wanted.
 *
 * @param mark the last decided slot
 * @param now the store's time
 */
export function planSlot(
  schedule: Schedule,
  policies: SlotPolicies,
  mark: number,
  now: number,
  task = '',
): SlotPlan {
  const { jitterMs, catchUp, catchUpMax, catchUpWindowMs, startDeadlineMs } = policies
  const dueAt = (slot: number): number => dueTime(schedule, policies, slot, task)
  const latest = schedule.latest(Math.floor(now))
  const isWaiting = jitterMs > 0 && latest > mark && dueAt(latest) > now
  const newest = isWaiting ? schedule.latest(latest - 1) : latest
  if (newest <= mark) {
    const next = isWaiting ? latest : schedule.next(Math.max(mark, Math.floor(now)))
    return { kind: 'wait', until: dueAt(next) }
  }
  if (catchUp === 'all') {
    const oldest = Math.max(mark, now - Math.max(catchUpWindowMs, startDeadlineMs) - 1)
    const slot = slotsBefore(schedule, newest + 1, oldest, catchUpMax).at(-1)
    return { kind: 'claim', slot: slot ?? newest, decide: slot === undefined ? 'miss' : 'run' }
  }
  const lateMs = now - dueAt(newest)
  const isWanted = lateMs <= startDeadlineMs || (catchUp === 'latest' && lateMs <= catchUpWindowMs)
  return { kind: 'claim', slot: newest, decide: isWanted ? 'run' : 'miss' }
}

/**
 * When a slot is to be claimed, on the store's clock: later than its own instant by its share of `jitter`. The same on
 * every node: spreads tasks that are due together, never beyond their next slot.
 */
export function dueTime(schedule: Schedule, { jitterMs }: SlotPolicies, slot: number, task = ''): number {
  if (jitterMs === 0 || slot === Infinity) return slot
  const longestMs = longestJitterMs(jitterMs, schedule.next(slot) - slot)
  const hash = createHash('sha256').update(`${task}\0${slot}`).digest()
  return slot + Math.floor((hash.readUInt32BE() / 2 ** 32) * longestMs)
}

/** A slot is claimed before the next one comes due. */
export function longestJitterMs(jitterMs: number, periodMs: number): number {
  return Math.min(jitterMs, periodMs * 0.9)
}
