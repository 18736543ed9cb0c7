// A sample of the changes of all zones, by a seed; all of them with LEASEHOLD_ZONES=all, which takes minutes.
import { InvalidOptionError } from 'leasehold'
import { seededRandom } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { cronSchedule } from '../../src/scheduler/cron-schedule.ts'
import { localSlots } from './local-slots.ts'
import { changesOf, ZoneCheck } from './zone-changes.ts'

const zones = Intl.supportedValuesOf('timeZone')
const [firstYear, lastYear] = [1990, 2040]
const isEverything = process.env['LEASEHOLD_ZONES'] === 'all'
const seed = Number(process.env['LEASEHOLD_SEED'] ?? 1)

/** Of each zone, the changes of so many years in a row. */
const sampledYears = 1
const sampledZones = 40

describe('30 2, 0 0, */15 and 0 * around a change of the clocks', () => {
  it.skipIf(isEverything)(
    `fire as one finds by looking at the clocks each minute: a sample, LEASEHOLD_SEED=${seed} (N51, N52, N53, M24)`,
    () => {
      const { integer, pick } = seededRandom(seed)
      const check = new ZoneCheck()
      let looked = 0
      for (let i = 0; i < sampledZones; i++) {
        const year = firstYear + integer(lastYear - firstYear + 1)
        for (const change of changesOf(pick(zones), year, year + sampledYears - 1)) {
          looked++
          expect(check.disagreements(change)).toEqual([])
        }
      }
      expect(looked).toBeGreaterThan(0)
    },
  )

  it.runIf(isEverything)(
    `fire as one finds by looking at the clocks each minute: ${zones.length} zones, ${firstYear} to ${lastYear}`,
    () => {
      const check = new ZoneCheck()
      const disagreements: string[] = []
      let looked = 0
      for (const zone of zones) {
        for (const change of changesOf(zone, firstYear, lastYear)) {
          looked++
          disagreements.push(...check.disagreements(change))
        }
      }
      console.log(`${zones.length} zones, ${looked} changes, ${disagreements.length} disagreements`)
      expect(disagreements).toEqual([])
    },
    3_600_000,
  )

  it('fire as one finds by looking at the clocks each minute: where they were put back by seven hours', () => {
    const check = new ZoneCheck()
    const changes = changesOf('Antarctica/Vostok', 1994, 1994)
    expect(
      changes.map(({ at, leads: [before, after] }) => [at, (before - after) / 3_600_000]),
    ).toContainEqual([Date.UTC(1994, 0, 31, 17), 7])
    expect(changes.flatMap((change) => check.disagreements(change))).toEqual([])
  })

  it('are looked at by an oracle that finds the same as a person with a calendar', () => {
    const berlin = (cron: string, day: string): string[] =>
      localSlots(cron, 'Europe/Berlin', Date.parse(`${day}T00:00Z`), Date.parse(`${day}T03:00Z`)).map(
        (slot) => new Date(slot).toISOString().slice(11, 16),
      )
    expect(berlin('30 2 * * *', '2026-03-29')).toEqual(['01:00'])
    expect(berlin('30 2 * * *', '2026-10-25')).toEqual(['00:30'])
    expect(berlin('0 * * * *', '2026-03-29')).toEqual(['00:00', '01:00', '02:00'])
    expect(berlin('0 * * * *', '2026-10-25')).toEqual(['00:00', '01:00', '02:00'])
  })
})

describe('finding a slot', () => {
  const rare = ['0 0 29 2 *', '30 2 29 2 *', '0 0 29 2 1#1', '0 0 ? 2 0#5', '59 59 23 31 12 *', '0 0 L 2 *']

  /** The quickest of some attempts: the machine may have something else to do. */
  const quickest = (work: () => unknown): number => {
    const times = Array.from({ length: 5 }, () => {
      const begun = performance.now()
      work()
      return performance.now() - begun
    })
    return Math.min(...times)
  }

  it.each(rare)('takes milliseconds: %s, wherever one begins', (cron) => {
    for (const timeZone of ['UTC', 'America/New_York', 'Africa/Casablanca', 'Australia/Lord_Howe']) {
      const schedule = cronSchedule(cron, timeZone)
      for (let year = firstYear; year <= lastYear; year += 3) {
        // Around 1900 and 2100, which are no leap years, eight years lie between two.
        for (const instant of [Date.UTC(year, 1, 28), Date.UTC(year, 10, 1), Date.UTC(year + 60, 2, 1)]) {
          expect(quickest(() => schedule.next(instant))).toBeLessThan(20)
          expect(quickest(() => schedule.latest(instant))).toBeLessThan(20)
        }
      }
    }
  })

  it.each(['0 0 30 2 *', '0 0 31 2 *', '0 0 31 4,6,9,11 *', '0 0 31W 2 *', '0 0 30 2 1#6'])(
    'that does not exist is refused within moments: %s',
    (cron) => {
      expect(
        quickest(() => expect(() => cronSchedule(cron, 'Europe/Berlin')).toThrow(InvalidOptionError)),
      ).toBeLessThan(250)
    },
  )
})
