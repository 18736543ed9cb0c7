import { cronSchedule } from './cron-schedule.ts'
import { intervalSchedule, isInterval } from './interval-schedule.ts'
import type { Schedule } from './schedule.ts'

/** What the text says that a task's record keeps of its definition: that of this version, of another one, or anything. */
export interface StoredDefinition {
  /** The name as the user wrote it, where the store has another form of it; else null. */
  readonly name: string | null
  /** It is fired by something else than a scheduler. */
  readonly isFiredElsewhere: boolean
  /** How many runs of it may overlap; 0 if none. */
  readonly laneCount: number
  /** How much later than its own instant a slot may be claimed. */
  readonly jitterMs: number
  /** Whose lane it is: the stored name of that task, or null. */
  readonly laneOf: string | null
  /** Null if it cannot be read. Made when it is asked for, since that takes a while. */
  schedule(): Schedule | null
}

export function readDefinition(text: string): StoredDefinition {
  const { name, fired, maxOverlap, jitterMs, laneOf, ...timing } = fieldsOf(text)
  const isLaneCount = typeof maxOverlap === 'number' && maxOverlap >= 2 && maxOverlap <= 100
  return {
    name: typeof name === 'string' ? name : null,
    isFiredElsewhere: fired === true,
    laneCount: isLaneCount ? Math.floor(maxOverlap) : 0,
    jitterMs: typeof jitterMs === 'number' && jitterMs > 0 ? jitterMs : 0,
    laneOf: typeof laneOf === 'string' ? laneOf : null,
    schedule: () => scheduleFrom(timing),
  }
}

/** What a text has of the name, where it cannot be read from the stored form. */
export function shownName(name: string, storedName: string): { readonly name?: string } {
  return storedName === name ? {} : { name: name.slice(0, 200) }
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function scheduleFrom({ cron, timeZone, everyMs }: Readonly<Record<string, unknown>>): Schedule | null {
  try {
    if (typeof cron === 'string' && typeof timeZone === 'string') return cronSchedule(cron, timeZone)
    return typeof everyMs === 'number' && isInterval(everyMs) ? intervalSchedule(everyMs) : null
  } catch {
    return null
  }
}
