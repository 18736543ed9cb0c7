import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cronSchedule } from '../../src/scheduler/cron-schedule.ts'
import { slotsBefore, slotsBetween } from '../../src/scheduler/schedule.ts'
import { clockChanges, localSlots } from './local-slots.ts'

const day = 86_400_000

/** The slots of some days around a date, as `date time` on the clocks of the zone and their distance in minutes. */
function slotsAround(cron: string, timeZone: string, from: string, to: string): string[] {
  const slots = slotsBetween(cronSchedule(cron, timeZone), Date.parse(from), Date.parse(to), 1_000)
  return slots.map((slot) => {
    const local = new Date(slot).toLocaleString('sv-SE', { timeZone, timeZoneName: 'shortOffset' })
    return local.replace(/:00 /, ' ').replace('GMT', '')
  })
}

describe('a local time that the clocks skip in spring', () => {
  it.each([
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29 03:00 +2', '2026-03-30 02:30 +2']],
    ['0 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29 03:00 +2', '2026-03-30 02:00 +2']],
    ['0 0 * * *', 'America/Santiago', '2026-09-05T12:00Z', ['2026-09-06 01:00 −3', '2026-09-07 00:00 −3']],
    [
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T03:00Z',
      ['2026-10-04 02:30 +11', '2026-10-05 02:15 +11'],
    ],
    // Croner itself leaves these three out.
    ['30 23 * * *', 'America/Nuuk', '2026-03-28T12:00Z', ['2026-03-29 00:00 −1', '2026-03-29 23:30 −1']],
    ['30 2 * * *', 'Pacific/Apia', '2011-12-30T00:00Z', ['2011-12-31 00:00 +14', '2011-12-31 02:30 +14']],
    ['*/20 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29 03:00 +2', '2026-03-30 02:00 +2']],
  ])('%s %s fires once, at the first instant after (N51, M24)', (cron, timeZone, from, expected) => {
    const to = new Date(Date.parse(from) + 10 * day).toISOString()
    expect(slotsAround(cron, timeZone, from, to).slice(0, 2)).toEqual(expected)
  })

  it('together with the one that the clocks jump to is one slot', () => {
    expect(slotsAround('0 2-3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', '2026-03-29T12:00Z')).toEqual([
      '2026-03-29 03:00 +2',
    ])
  })
})

describe('a local time that the clocks show twice in autumn', () => {
  it.each([
    ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', ['2026-11-01 01:30 −4', '2026-11-02 01:30 −5']],
    ['0 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25 02:00 +2', '2026-10-26 02:00 +1']],
    [
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2026-04-04T00:00Z',
      ['2026-04-05 01:45 +11', '2026-04-06 01:45 +10:30'],
    ],
    ['0,30 1 * * *', 'America/New_York', '2026-11-01T05:10Z', ['2026-11-01 01:30 −4', '2026-11-02 01:00 −5']],
  ])('%s %s fires once, at the first (N52, N53, M24)', (cron, timeZone, from, expected) => {
    const to = new Date(Date.parse(from) + 3 * day).toISOString()
    expect(slotsAround(cron, timeZone, from, to).slice(0, 2)).toEqual(expected)
  })
})

describe('a cadence', () => {
  it.each(['2026-11-01T03:00Z', '2026-03-08T05:00Z'])(
    '*/30 goes on every half hour through a change of the clocks, from %s (N52)',
    (from) => {
      const slots = slotsBetween(
        cronSchedule('*/30 * * * *', 'America/New_York'),
        Date.parse(from),
        Date.parse(from) + day / 4,
        100,
      )
      const gaps = slots.slice(1).map((slot, index) => slot - (slots[index] ?? 0))
      expect(slots).toHaveLength(12)
      expect(new Set(gaps)).toEqual(new Set([30 * 60_000]))
    },
  )
})

const crons = [
  '30 2 * * *',
  '0 0 * * *',
  '45 1 * * *',
  '30 23 * * *',
  '0,30 1 * * *',
  '10,50 0-3 * * *',
  '*/15 * * * *',
  '0 * * * *',
  '*/20 2 * * *',
  '5 */2 * * *',
  '0 0-6/2 * * *',
]

describe('in any time zone, around any change of its clocks', () => {
  it('the slots are those that one finds by looking at the clock every minute (N51, N52, N53, M24)', () => {
    const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'))
    const year = fc.integer({ min: 1990, max: 2040 })
    fc.assert(
      fc.property(zone, year, fc.constantFrom(...crons), (timeZone, inYear, cron) => {
        const schedule = cronSchedule(cron, timeZone)
        for (const change of clockChanges(timeZone, inYear).slice(0, 2)) {
          const [from, to] = [change - 1.5 * day, change + 1.5 * day]
          const expected = localSlots(cron, timeZone, from, to)
          expect(slotsBetween(schedule, from - 1, to - 1, 1_000).map(iso)).toEqual(expected.map(iso))
          expect(slotsBefore(schedule, to, from - 1, 1_000).map(iso)).toEqual(expected.toReversed().map(iso))
        }
      }),
      { numRuns: 60 },
    )
  }, 60_000)

  it('next and latest agree at every instant: nothing lies between a slot and the next one', () => {
    const instant = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2040, 0) })
    const zone = fc.constantFrom(
      'Europe/Berlin',
      'America/Santiago',
      'Australia/Lord_Howe',
      'Africa/Casablanca',
      'UTC',
    )
    fc.assert(
      fc.property(
        zone,
        instant,
        fc.constantFrom(...crons, '0 0 29 2 *', '0 9 L * *', '*/7 * * * * *'),
        (timeZone, at, cron) => {
          const schedule = cronSchedule(cron, timeZone)
          const [latest, next] = [schedule.latest(at), schedule.next(at)]
          expect(latest).toBeLessThanOrEqual(at)
          expect(next).toBeGreaterThan(at)
          expect(schedule.latest(latest)).toBe(latest)
          expect(schedule.next(latest)).toBe(next)
          expect(schedule.latest(next - 1)).toBe(latest)
        },
      ),
      { numRuns: 300 },
    )
  })
})

function iso(instant: number): string {
  return new Date(instant).toISOString()
}
