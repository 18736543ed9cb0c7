/*
 * An oracle for crons on wall clocks: walks through a span minute by minute, looks at what the clocks show, and applies
 * the rules as they are written down. Knows no offsets, no transitions and no croner.
 */

const minute = 60_000

/** A cron of minute and hour only, as in `'0,30 2-3 * * *'`. */
interface DailyCron {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  /** Fires whenever the clocks match. */
  readonly keepsCadence: boolean
  /** Fires after a gap for what the clocks skipped. */
  readonly makesUp: boolean
}

/** What the clocks of a zone show at an instant, as if it were UTC, to the minute. */
export type WallClock = (instant: number) => number

/**
 * The slots of a daily cron from one instant to another, both at full minutes and not close to a change of the clocks.
 *
 * @param zone its IANA name, or its clock
 */
export function localSlots(cron: string, zone: string | WallClock, from: number, to: number): number[] {
  const daily = readCron(cron)
  const clock = typeof zone === 'string' ? wallClock(zone) : zone
  const slots: number[] = []
  const shown = new Set<number>()
  let previous = clock(from - minute)
  for (let instant = from; instant < to; instant += minute) {
    const local = clock(instant)
    const isSkipped =
      local - previous > minute && skips(daily, previous + minute, local, shown) && daily.makesUp
    const isShown = matches(daily, local) && (daily.keepsCadence || !shown.has(local))
    if (isSkipped || isShown) slots.push(instant)
    shown.add(local)
    previous = local
  }
  return slots
}

/** The instants in a year at which the clocks of a zone are changed, found by looking every half hour. */
export function clockChanges(timeZone: string, year: number): number[] {
  const clock = wallClock(timeZone)
  const changes: number[] = []
  const step = 30 * minute
  let lead = clock(Date.UTC(year, 0, 1)) - Date.UTC(year, 0, 1)
  for (let instant = Date.UTC(year, 0, 1); instant < Date.UTC(year + 1, 0, 1); instant += step) {
    const now = clock(instant) - instant
    if (now !== lead) changes.push(instant)
    lead = now
  }
  return changes
}

function skips(daily: DailyCron, from: number, to: number, shown: ReadonlySet<number>): boolean {
  for (let local = from; local < to; local += minute) {
    if (matches(daily, local) && !shown.has(local)) return true
  }
  return false
}

function matches({ minutes, hours }: DailyCron, local: number): boolean {
  const date = new Date(local)
  return minutes.has(date.getUTCMinutes()) && hours.has(date.getUTCHours())
}

function readCron(cron: string): DailyCron {
  const [minutes = '', hours = ''] = cron.split(' ')
  return {
    minutes: readField(minutes, 60),
    hours: readField(hours, 24),
    keepsCadence: /[*/]/.test(minutes + hours),
    makesUp: !hours.includes('*'),
  }
}

function readField(field: string, size: number): Set<number> {
  const values = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [first = '0', last = first] = range === '*' ? ['0', String(size - 1)] : range.split('-')
    for (let value = Number(first); value <= Number(last); value += Number(step)) values.add(value)
  }
  return values
}

export function wallClock(timeZone: string): WallClock {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  return (instant) => Date.parse(`${format.format(instant).replace(' ', 'T')}:00Z`)
}
