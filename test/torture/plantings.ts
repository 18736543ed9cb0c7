export interface Planting {
  readonly plant: string
  readonly nemesis: string
  readonly finds: string
  readonly seconds?: number
}

/** Each bug, the faults it takes, and the checker that has to find it. */
export const plantings: readonly Planting[] = [
  { plant: 'fence-from-the-client', nemesis: 'none', finds: 'fence-order' },
  { plant: 'fence-loses-digits', nemesis: 'none', finds: 'fence-order' },
  { plant: 'renewal-believed-unanswered', nemesis: 'black-hole', finds: 'exclusive-belief', seconds: 12 },
  { plant: 'deadline-too-long', nemesis: 'stop', finds: 'exclusive-belief', seconds: 12 },
  { plant: 'renewal-recreates', nemesis: 'deletion', finds: 'exception-bound', seconds: 20 },
  { plant: 'late-loss-signal', nemesis: 'black-hole', finds: 'loss-in-time' },
  { plant: 'ttl-too-long', nemesis: 'kill', finds: 'liveness' },
  { plant: 'release-not-sent', nemesis: 'none', finds: 'liveness' },
  { plant: 'timer-left-behind', nemesis: 'none', finds: 'leaks' },
  { plant: 'rejection-unhandled', nemesis: 'none', finds: 'leaks' },
  { plant: 'decided-is-granted', nemesis: 'none', finds: 'once-per-slot' },
  { plant: 'early-is-granted', nemesis: 'none', finds: 'no-slot-early' },
  { plant: 'always-retried', nemesis: 'kill', finds: 'at-most-once', seconds: 10 },
  { plant: 'never-retried', nemesis: 'kill', finds: 'at-least-once', seconds: 10 },
  { plant: 'run-believed-unanswered', nemesis: 'black-hole', finds: 'no-overlap-of-runs', seconds: 12 },
  { plant: 'completion-not-sent', nemesis: 'none', finds: 'records-agree', seconds: 6 },
  { plant: 'resource-without-fences', nemesis: 'stop', finds: 'fenced-resource', seconds: 15 },
  { plant: 'run-log-with-holes', nemesis: 'none', finds: 'no-silent-miss', seconds: 8 },
  { plant: 'down-is-held', nemesis: 'refused', finds: 'honest-null', seconds: 8 },
  { plant: 'wait-without-end', nemesis: 'none', finds: 'wait-in-time' },
  { plant: 'release-takes-its-time', nemesis: 'none', finds: 'release-in-time' },
  { plant: 'release-answers-for-the-callback', nemesis: 'none', finds: 'own-result' },
  { plant: 'some-renewals-forgotten', nemesis: 'many-leases', finds: 'many-held', seconds: 16 },
  { plant: 'old-schedule-returns', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 10 },
  { plant: 'edit-fires-the-past', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 10 },
  { plant: 'edits-not-logged', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 8 },
  { plant: 'missed-for-no-reason', nemesis: 'none', finds: 'true-reasons', seconds: 8 },
]
