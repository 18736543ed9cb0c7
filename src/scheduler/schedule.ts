/**
 * When a task fires: an endless, unchanging set of instants, in milliseconds since the epoch. The same on every node
 * that was given the same text. All arithmetic, no clock.
 */
export interface Schedule {
  /** Equal exactly for schedules written the same way, and so firing at the same instants. At most 64 bytes. */
  readonly fingerprint: string
  /** The schedule in words that {@link parseSchedule} reads back. */
  readonly timing: Timing
  /** The first slot after an instant; `Infinity` if there is none before the year 10000. */
  next(after: number): number
  /** The last slot at or before an instant; `-Infinity` if there is none. */
  latest(atOrBefore: number): number
}

/** What a schedule is made from. */
export type Timing =
  | { readonly cron: string; readonly timeZone: string; readonly everyMs?: undefined }
  | { readonly everyMs: number; readonly cron?: undefined; readonly timeZone?: undefined }
  | { readonly everyMs?: undefined; readonly cron?: undefined; readonly timeZone?: undefined }

/** The first slots after one instant and up to another, at most `limit` of them. */
export function slotsBetween(schedule: Schedule, after: number, upTo: number, limit: number): number[] {
  const slots: number[] = []
  for (let slot = schedule.next(after); slot <= upTo && slots.length < limit; slot = schedule.next(slot)) {
    slots.push(slot)
  }
  return slots
}

/** The last slots before one instant and after another, the latest first, at most `limit` of them. */
export function slotsBefore(schedule: Schedule, before: number, after: number, limit: number): number[] {
  const slots: number[] = []
  for (
    let slot = schedule.latest(before - 1);
    slot > after && slots.length < limit;
    slot = schedule.latest(slot - 1)
  ) {
    slots.push(slot)
  }
  return slots
}

/**
 * The same schedule, which remembers three slots in a row around the instant that it was asked for last: when a slot has come,
 * those before and after it are asked for several times, and of a cron each costs a tenth of a millisecond and more.
 */
export function remembering(schedule: Schedule): Schedule {
  let before = Number.NaN
  let from = Number.NaN
  let to = Number.NaN
  const isIn = (instant: number, first: number, end: number): boolean => instant >= first && instant < end
  return {
    fingerprint: schedule.fingerprint,
    timing: schedule.timing,
    next(after) {
      if (isIn(after, from, to)) return to
      return isIn(after, before, from) ? from : schedule.next(after)
    },
    latest(atOrBefore) {
      if (isIn(atOrBefore, from, to)) return from
      if (isIn(atOrBefore, before, from)) return before
      // Mostly the slot that was waited for has come: only the one after it is still to be computed.
      const following = atOrBefore >= to ? schedule.next(to) : Number.NaN
      const isNextPeriod = atOrBefore < following
      before = isNextPeriod ? from : Number.NaN
      from = isNextPeriod ? to : schedule.latest(atOrBefore)
      to = isNextPeriod ? following : schedule.next(atOrBefore)
      return from
    },
  }
}
