import { publish } from '../core/channels.ts'
import type { Claim, Claimed } from './claimer.ts'

/** Tells what a claim has shown of its slot, if that is news. */
export function tellDecision(namespace: string, task: string, claim: Claim, { answer }: Claimed): void {
  const { outcome } = answer
  if (outcome === 'early' || outcome === 'behind' || outcome === 'superseded' || outcome === 'held') return
  if (claim.orders !== undefined && outcome !== 'granted' && outcome !== 'takeover') return
  const isLapseClaim = claim.slot === claim.after
  if (isLapseClaim && outcome === 'decided') return
  const isMissed = outcome === 'skipped' && claim.decide === 'miss' && answer.reason === claim.reason
  publish('leasehold:slot', () => ({
    namespace,
    task,
    slot: 'slot' in answer ? answer.slot : claim.slot,
    outcome: isMissed ? 'missed' : outcome,
    ...('reason' in answer ? { reason: answer.reason } : {}),
  }))
}
