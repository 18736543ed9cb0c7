import { cronSchedule } from '../../src/scheduler/cron-schedule.ts'
import { type Schedule, slotsBefore, slotsBetween } from '../../src/scheduler/schedule.ts'
import { localSlots, type WallClock, wallClock } from './local-slots.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** A change of the clocks of a zone. */
export interface ZoneChange {
  readonly timeZone: string
  /** The first minute after it. */
  readonly at: number
  /** How far the clocks are ahead of UTC, before and after. */
  readonly leads: readonly [number, number]
}

/**
 * The crons, and how far around a change to look at them. A time of day needs a whole day on either side; what comes every
 * hour shows within hours what becomes of it.
 */
const crons: Readonly<Record<string, number>> = {
  '30 2 * * *': 26 * hour,
  '0 0 * * *': 26 * hour,
  '*/15 * * * *': 4 * hour,
  '0 * * * *': 4 * hour,
}

/** All changes of a zone's clocks from the beginning of one year to the end of another, by looking at them. */
export function changesOf(timeZone: string, fromYear: number, toYear: number): ZoneChange[] {
  const clock = wallClock(timeZone)
  const lead = (instant: number): number => clock(instant) - instant
  const end = Date.UTC(toYear + 1, 0, 1)
  const changes: ZoneChange[] = []
  let before = lead(Date.UTC(fromYear, 0, 1))
  for (let at = Date.UTC(fromYear, 0, 1) + day; at <= end; at += day) {
    const after = lead(at)
    if (after === before) continue
    changes.push({ timeZone, at: firstWith(lead, after, at - day, at), leads: [before, after] })
    before = after
  }
  return changes
}

/** Looks at the slots around changes, and compares them with those that one finds by looking at the clocks each minute. */
export class ZoneCheck {
  readonly #schedules = new Map<string, Schedule>()
  /** What one has to find around a change. Clocks that are changed alike show the same, so it is found out once. */
  readonly #expected = new Map<string, readonly number[]>()

  /** Where the schedules differ from what they should be, as text. */
  disagreements(change: ZoneChange): string[] {
    const found: string[] = []
    for (const [cron, reach] of Object.entries(crons)) {
      const [from, to] = [change.at - reach, change.at + reach]
      const expected = this.#slotsToFind(cron, change, from, to)
      const schedule = this.#scheduleOf(cron, change.timeZone)
      const ways = {
        next: slotsBetween(schedule, from - 1, to - 1, 1_000),
        latest: slotsBefore(schedule, to, from - 1, 1_000).toReversed(),
      }
      for (const [way, slots] of Object.entries(ways)) {
        if (slots.join() === expected.join()) continue
        const list = (instants: readonly number[]): string =>
          instants.map((instant) => new Date(instant).toISOString().slice(0, 16)).join(' ')
        found.push(`${change.timeZone} ${cron} by ${way}: ${list(slots)} instead of ${list(expected)}`)
      }
    }
    return found
  }

  #slotsToFind(
    cron: string,
    { timeZone, at, leads }: ZoneChange,
    from: number,
    to: number,
  ): readonly number[] {
    const id = `${cron} ${at} ${leads.join()}`
    const known = this.#expected.get(id)
    if (known !== undefined) return known
    const expected = localSlots(cron, wallClock(timeZone), from, to)
    this.#expected.set(id, expected)
    return expected
  }

  #scheduleOf(cron: string, timeZone: string): Schedule {
    const id = `${cron} ${timeZone}`
    const schedule = this.#schedules.get(id) ?? cronSchedule(cron, timeZone)
    this.#schedules.set(id, schedule)
    return schedule
  }
}

function firstWith(lead: WallClock, wanted: number, from: number, to: number): number {
  let [early, late] = [from / minute, to / minute]
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (lead(middle * minute) === wanted) late = middle
    else early = middle
  }
  return late * minute
}
