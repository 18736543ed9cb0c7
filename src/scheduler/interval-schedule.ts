import { year } from '../core/duration.ts'
import type { Schedule } from './schedule.ts'

export const intervalRange: { readonly min: number; readonly max: number } = { min: 100, max: year }

/** Every so many milliseconds, counted from the epoch: all nodes and all deploys agree on the instants. */
export function intervalSchedule(everyMs: number): Schedule {
  return {
    fingerprint: `every:${everyMs}`,
    timing: { everyMs },
    next: (after) => (Math.floor(after / everyMs) + 1) * everyMs,
    latest: (atOrBefore) => Math.floor(atOrBefore / everyMs) * everyMs,
  }
}

/** Whether a stored number is an interval that a task can have. */
export function isInterval(everyMs: number): boolean {
  return Number.isInteger(everyMs) && everyMs >= intervalRange.min && everyMs <= intervalRange.max
}
