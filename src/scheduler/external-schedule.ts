import type { Schedule } from './schedule.ts'

/** Of a task whose slots only the one who fires it knows. */
export const externalSchedule: Schedule = {
  fingerprint: 'external',
  timing: {},
  next: () => Infinity,
  latest: () => -Infinity,
}
