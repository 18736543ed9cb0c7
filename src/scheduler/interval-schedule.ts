import type { Schedule } from './schedule.ts'

/** Every so many milliseconds, counted from the epoch: all nodes and all deploys agree on the instants. */
export function intervalSchedule(everyMs: number): Schedule {
  return {
    fingerprint: `every:${everyMs}`,
    timing: { everyMs },
    next: (after) => (Math.floor(after / everyMs) + 1) * everyMs,
    latest: (atOrBefore) => Math.floor(atOrBefore / everyMs) * everyMs,
  }
}
