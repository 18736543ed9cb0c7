import { createHash } from 'node:crypto'
import { Cron } from 'croner'
import { InvalidOptionError, quoted, requireOption } from '../core/errors.ts'
import { LocalTime, type PutBack } from './local-time.ts'
import type { Schedule } from './schedule.ts'

/** Where the search for a cron's first slot begins; one that has none from here on never fires. */
const searchFrom = Date.UTC(2000, 0, 1)
const longestCron = 200
const day = 86_400_000
/** Croner looks no further than this for the other pass of a time that the clocks show twice. Vostok 1994 had seven hours. */
const longestRepeat = 3 * 3_600_000

const nicknames: Readonly<Record<string, string>> = {
  '@YEARLY': '0 0 1 1 *',
  '@ANNUALLY': '0 0 1 1 *',
  '@MONTHLY': '0 0 1 * *',
  '@WEEKLY': '0 0 * * 0',
  '@DAILY': '0 0 * * *',
  '@MIDNIGHT': '0 0 * * *',
  '@HOURLY': '0 * * * *',
}

/**
 * A cron on the wall clocks of a time zone. The calculator is croner; what happens when those clocks are changed:
 *
 * - a local time that they skip (spring) fires once, at the first instant after the gap
 * - a local time that they show twice (autumn) fires once, at the first
 * - a cron with a `*` or a step in seconds, minutes or hours keeps its cadence: it fires whenever the clocks match, in
 *   both passes of a repeated hour; skipped times of one with a `*` in the hours are not made up for, since its next
 *   one is near
 *
 * @param text five fields, or six with seconds first; names, `L`, `W`, `#` and the nicknames (`@daily`) as croner has them
 * @param timeZone an IANA name
 * @throws InvalidOptionError (`cron`, `timeZone`)
 */
export function cronSchedule(text: string, timeZone: string): Schedule {
  const cron = canonicalCron(text)
  const localTime = zoneClocks(timeZone)
  const calculator = calculate(cron, text, timeZone)
  // On a clock that is never changed; its instants are local times of the zone.
  const onPaper = calculate(cron, text, 'UTC')
  const fields = cron.split(' ')
  const makesUpForSkipped = !(fields[2] ?? '').includes('*')
  const keepsCadence = /[*/]/.test(fields.slice(0, 3).join(' '))
  const longRepeatNear = (instant: number): PutBack | null =>
    keepsCadence ? localTime.putBackNear(instant, longestRepeat) : null
  const nextShown = (after: number): number => {
    const change = longRepeatNear(after)
    const found = change === null ? null : nextAround(onPaper, change, after)
    return found ?? instantOf(calculator.nextRun(new Date(after)), Infinity)
  }
  const latestShown = (atOrBefore: number): number => {
    const change = longRepeatNear(atOrBefore)
    const found = change === null ? null : latestAround(onPaper, change, atOrBefore)
    return found ?? instantOf(calculator.previousRuns(1, new Date(atOrBefore + 1))[0], -Infinity)
  }

  const schedule: Schedule = {
    fingerprint: fingerprintOf(cron, timeZone),
    timing: { cron: text.trim(), timeZone },
    next(after) {
      const shown = nextShown(after)
      if (!makesUpForSkipped) return shown
      const local = onPaper.nextRun(new Date(localTime.highestAt(after)))
      const skippedAt = local === null ? null : localTime.skippedAt(local.getTime())
      return skippedAt === null ? shown : Math.min(shown, skippedAt)
    },
    latest(atOrBefore) {
      const shown = latestShown(atOrBefore)
      if (!makesUpForSkipped) return shown
      const local = onPaper.previousRuns(1, new Date(localTime.at(atOrBefore) + 1))[0]
      const skippedAt = local === undefined ? null : localTime.skippedAt(local.getTime())
      return skippedAt === null ? shown : Math.max(shown, skippedAt)
    },
  }
  if (schedule.next(searchFrom) === Infinity) {
    throw new InvalidOptionError(
      'cron',
      `cron ${quoted(text)} names a date that does not exist: it would never fire.`,
    )
  }
  return schedule
}

/** The first match after an instant near a change, on either side of it; null if it lies beyond a day. */
function nextAround(onPaper: Cron, { at, before, after }: PutBack, instant: number): number | null {
  const nextWith = (offset: number, from: number): number =>
    instantOf(onPaper.nextRun(new Date(from + offset)), Infinity) - offset
  const first = instant < at ? nextWith(before, instant) : Infinity
  const found = first < at ? first : nextWith(after, Math.max(instant, at - 1))
  return found - instant < day ? found : null
}

/** The last match up to an instant near a change, on either side of it; null if it lies beyond a day. */
function latestAround(onPaper: Cron, { at, before, after }: PutBack, instant: number): number | null {
  const latestWith = (offset: number, to: number): number =>
    instantOf(onPaper.previousRuns(1, new Date(to + offset + 1))[0], -Infinity) - offset
  const last = instant >= at ? latestWith(after, instant) : -Infinity
  const found = last >= at ? last : latestWith(before, Math.min(instant, at - 1))
  return instant - found < day ? found : null
}

/** @throws InvalidOptionError */
function canonicalCron(text: unknown): string {
  requireOption(typeof text === 'string', 'cron', () => `a text such as '0 2 * * *'; got ${typeof text}`)
  const fields = text.trim().toUpperCase()
  const cron = (nicknames[fields] ?? fields).split(/\s+/)
  if (text.length > longestCron || (cron.length !== 5 && cron.length !== 6)) {
    throw new InvalidOptionError(
      'cron',
      `cron must have five fields (minute, hour, day, month, weekday), or six with seconds first; got ${quoted(text)}.`,
    )
  }
  return [...(cron.length === 5 ? ['0'] : []), ...cron].join(' ')
}

/** @throws InvalidOptionError */
function zoneClocks(timeZone: unknown): LocalTime {
  // Offsets such as +02:00 are no zones: only newer versions of Node.js know them, and they have no rules.
  if (typeof timeZone === 'string' && /^[a-z]/i.test(timeZone)) {
    try {
      return new LocalTime(timeZone)
    } catch {
      // falls through
    }
  }
  const shown = typeof timeZone === 'string' ? quoted(timeZone) : typeof timeZone
  throw new InvalidOptionError(
    'timeZone',
    `timeZone must be the IANA name of a time zone, such as 'Europe/Paris' or 'UTC'; got ${shown}.`,
  )
}

/** @throws InvalidOptionError */
function calculate(cron: string, text: string, timeZone: string): Cron {
  try {
    return new Cron(cron, { timezone: timeZone, mode: '6-part', fixedTimeRule: 'no-wildcard', paused: true })
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
    throw new InvalidOptionError('cron', `cron ${quoted(text)} cannot be read: ${reason}`, { cause: error })
  }
}

/** The zone is taken as it was written: which alias is the true name differs between versions of Node.js. */
function fingerprintOf(cron: string, timeZone: string): string {
  const canonical = `${cron} ${timeZone.toLowerCase()}`
  return `cron:${createHash('sha256').update(canonical).digest('base64url')}`
}

function instantOf(found: Date | null | undefined, none: number): number {
  return found?.getTime() ?? none
}
