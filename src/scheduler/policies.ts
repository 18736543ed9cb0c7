import { type Schedule } from './schedule.ts'

/** What is done about slots that were not claimed in time. */
export interface SlotPolicies {
  readonly catchUp: 'none' | 'latest'
  /** With `latest`: how old a missed slot may be and still run. */
  readonly catchUpWindowMs: number
  /** Up to this age a slot is merely late, and runs under either policy. */
  readonly startDeadlineMs: number
}

/** What there is to do about a task's slots. */
export type SlotPlan =
  /** Nothing before this slot comes due; `Infinity`: nothing ever. */
  | { readonly kind: 'wait'; readonly until: number }
  /** Claim this slot: to run it, or to decide that it was missed. */
  | { readonly kind: 'claim'; readonly slot: number; readonly decide: 'run' | 'miss' }

/** Why a slot that nobody claimed did not run: no node was there, or none reached the store. */
export const gapReason = 'down'
/** Why a slot was decided as missed: found after its start deadline, with nothing to catch up. */
export const lateReason = 'late'
/** Why a slot that waited for a retry was decided as missed: the next one came due. */
export const overtakenReason = 'overlap'

/**
 * Only the newest due slot is ever claimed, whether one slot was missed or a thousand: the mark that the claim names
 * accounts for those before it.
 *
 * @param mark the last decided slot
 * @param now the store's time
 */
export function planSlot(schedule: Schedule, policies: SlotPolicies, mark: number, now: number): SlotPlan {
  const slot = schedule.latest(Math.floor(now))
  if (slot <= mark) return { kind: 'wait', until: schedule.next(Math.max(mark, Math.floor(now))) }
  const lateMs = now - slot
  const isWanted =
    lateMs <= policies.startDeadlineMs ||
    (policies.catchUp === 'latest' && lateMs <= policies.catchUpWindowMs)
  return { kind: 'claim', slot, decide: isWanted ? 'run' : 'miss' }
}
