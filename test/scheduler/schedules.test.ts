import { InvalidOptionError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { cronSchedule } from '../../src/scheduler/cron-schedule.ts'
import { intervalSchedule } from '../../src/scheduler/interval-schedule.ts'
import { remembering, slotsBefore, slotsBetween } from '../../src/scheduler/schedule.ts'

const at = (text: string): number => Date.parse(text)
const iso = (instants: readonly number[]): string[] =>
  instants.map((instant) => new Date(instant).toISOString())

describe('an interval', () => {
  it('fires at the multiples of itself since the epoch, whenever it was made', () => {
    const schedule = intervalSchedule(7_000)
    expect(schedule.next(0)).toBe(7_000)
    expect(schedule.next(6_999)).toBe(7_000)
    expect(schedule.next(7_000)).toBe(14_000)
    expect(schedule.latest(6_999)).toBe(0)
    expect(schedule.latest(7_000)).toBe(7_000)
  })
})

describe('a cron', () => {
  it.each([
    ['0 2 * * *', ['2026-03-01T02:00:00.000Z', '2026-03-02T02:00:00.000Z']],
    ['*/20 * * * * *', ['2026-03-01T00:00:20.000Z', '2026-03-01T00:00:40.000Z']],
    ['0 9 * * MON-FRI', ['2026-03-02T09:00:00.000Z', '2026-03-03T09:00:00.000Z']],
    ['0 0 L * *', ['2026-03-31T00:00:00.000Z', '2026-04-30T00:00:00.000Z']],
    ['0 0 ? * 2#2', ['2026-03-10T00:00:00.000Z', '2026-04-14T00:00:00.000Z']],
    ['@weekly', ['2026-03-08T00:00:00.000Z', '2026-03-15T00:00:00.000Z']],
    ['0 0 29 2 *', ['2028-02-29T00:00:00.000Z', '2032-02-29T00:00:00.000Z']],
    // Day of month and day of week: either may match.
    ['0 0 13 * 5', ['2026-03-06T00:00:00.000Z', '2026-03-13T00:00:00.000Z']],
  ])('%s fires at the instants it names', (cron, expected) => {
    const schedule = cronSchedule(cron, 'UTC')
    const slots = slotsBetween(schedule, at('2026-03-01T00:00:00Z'), Infinity, 2)
    expect(iso(slots)).toEqual(expected)
    expect(slotsBefore(schedule, (slots[1] ?? 0) + 1, at('2026-03-01T00:00:00Z'), 5)).toEqual(
      slots.toReversed(),
    )
  })

  it('is counted on the wall clocks of its time zone', () => {
    const slots = slotsBetween(
      cronSchedule('0 2 * * *', 'Asia/Kolkata'),
      at('2026-03-01T00:00:00Z'),
      Infinity,
      1,
    )
    expect(iso(slots)).toEqual(['2026-03-01T20:30:00.000Z'])
  })

  it.each([
    ['0 0 31 2 *', 'a date that does not exist'],
    ['0 0 30 2 *', 'a date that does not exist'],
    ['0 0 31 4,6,9,11 *', 'a date that does not exist'],
    ['60 * * * *', 'minute'],
    ['* * * *', 'five fields'],
    ['* * * * * * *', 'five fields'],
    ['', 'five fields'],
    ['often', 'five fields'],
    ['2026-01-01T00:00:00', 'five fields'],
    ['@reboot', 'five fields'],
    ['*/0 * * * *', 'stepping'],
    ['a b c d e', 'illegal characters'],
    [`${'0,'.repeat(200)}0 * * * *`, 'five fields'],
  ])('%s is refused', (cron, why) => {
    const refused = expect(() => cronSchedule(cron, 'UTC'))
    refused.toThrow(InvalidOptionError)
    refused.toThrow(
      expect.objectContaining({ option: 'cron', message: expect.stringContaining(why) as string }),
    )
  })

  it.each(['Europe/Nowhere', '+02:00', '-05:00', '', 'Local', ' UTC'])(
    'in the zone %j is refused',
    (timeZone) => {
      expect(() => cronSchedule('0 2 * * *', timeZone)).toThrow(
        expect.objectContaining({ code: 'INVALID_OPTION', option: 'timeZone' }),
      )
    },
  )

  it('has a fingerprint of its own unless it is written the same but for spaces, case, seconds and nicknames', () => {
    const print = (cron: string, zone = 'UTC'): string => cronSchedule(cron, zone).fingerprint
    expect(print(' 0   2 * * mon ')).toBe(print('0 0 2 * * MON'))
    expect(print('@daily')).toBe(print('0 0 * * *'))
    expect(print('0 2 * * *', 'europe/paris')).toBe(print('0 2 * * *', 'Europe/Paris'))
    const different = ['0 2 * * *', '0 3 * * *', '0 2 * * 1', '30 0 2 * * *'].map((cron) => print(cron))
    expect(new Set([...different, print('0 2 * * *', 'Europe/Paris')]).size).toBe(5)
    for (const text of different) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(64)
  })

  it.each(['0 0 29 2 *', '0 0 1 1 *', '30 2 29 2 1#1', '* * * * * *', '0 0 31 12 *', '59 59 23 31 12 *'])(
    '%s has its next and its last slot found in milliseconds',
    (cron) => {
      const schedule = cronSchedule(cron, 'America/New_York')
      const begun = performance.now()
      for (let i = 0; i < 50; i++) {
        schedule.next(at('2026-03-01T00:00:00Z') + i * 1e8)
        schedule.latest(at('2026-03-01T00:00:00Z') + i * 1e8)
      }
      expect((performance.now() - begun) / 100).toBeLessThan(20)
    },
  )
})

describe('a schedule that remembers', () => {
  it('answers as the one below does', () => {
    const plain = cronSchedule('*/7 2 * * *', 'Europe/Berlin')
    const schedule = remembering(plain)
    for (let at_ = at('2026-03-28T23:00:00Z'); at_ < at('2026-03-29T05:00:00Z'); at_ += 59_000) {
      expect([schedule.latest(at_), schedule.next(at_)]).toEqual([plain.latest(at_), plain.next(at_)])
      expect([schedule.next(at_ - 200_000), schedule.latest(at_)]).toEqual([
        plain.next(at_ - 200_000),
        plain.latest(at_),
      ])
    }
  })
})
