import fc from 'fast-check'
import { InvalidOptionError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../src/core/duration.ts'
import { hostileValue } from './hostile-values.ts'

const anything = { min: 0, max: Infinity }
const unit = fc.constantFrom(['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000], [
  'd',
  86_400_000,
] as const)

describe('a duration', () => {
  it('is milliseconds, or a number with one of five units', () => {
    expect(parseDuration('ttl', 1_500, anything)).toBe(1_500)
    expect(parseDuration('ttl', '500ms', anything)).toBe(500)
    expect(parseDuration('ttl', '5s', anything)).toBe(5_000)
    expect(parseDuration('ttl', '15m', anything)).toBe(900_000)
    expect(parseDuration('ttl', '24h', anything)).toBe(86_400_000)
    expect(parseDuration('ttl', '7d', anything)).toBe(604_800_000)
    expect(parseDuration('ttl', '1.5s', anything)).toBe(1_500)
    expect(parseDuration('ttl', ' 5s ', anything)).toBe(5_000)
    expect(parseDuration('wait', Infinity, anything)).toBe(Infinity)
  })

  it('in text means the same as in milliseconds', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), unit, (count, [name, size]) => {
        expect(parseDuration('ttl', `${count}${name}`, anything)).toBe(count * size)
      }),
    )
  })

  it('is never rounded down: a lease never lasts less than was asked for', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (asked) => {
        const given = parseDuration('ttl', asked, anything)
        expect(Number.isInteger(given)).toBe(true)
        expect(given).toBeGreaterThanOrEqual(asked)
        expect(given - 1).toBeLessThan(asked)
      }),
    )
  })

  it('is refused below and above its range, with the range in the message', () => {
    const range = { min: 100, max: 60_000 }
    expect(parseDuration('ttl', 100, range)).toBe(100)
    expect(parseDuration('ttl', '1m', range)).toBe(60_000)
    for (const value of [99, 99.9, 0, -1, '60001ms', '61s', Infinity, -Infinity]) {
      expect(() => parseDuration('ttl', value, range)).toThrow(/^ttl must be between 100ms and 1m; got /)
    }
  })

  it.each([
    ['no unit', '5'],
    ['an unknown unit', '5w'],
    ['a unit in words', '5 seconds'],
    ['a space before the unit', '5 s'],
    ['a negative number', '-5s'],
    ['an exponent', '1e3ms'],
    ['a hexadecimal number', '0x10ms'],
    ['two units', '1m30s'],
    ['no number', 's'],
    ['nothing', ''],
    ['digits of another script', '٥s'],
    ['another case', '5S'],
    ['a line break inside', '5\ns'],
    ['not a number', NaN],
    ['negative milliseconds', -1],
    ['nothing at all', undefined],
    ['null', null],
    ['true', true],
    ['a bigint', 5n],
    ['a list', [5_000]],
    ['an object', { valueOf: () => 5_000 }],
    ['a boxed number', Object(5_000)],
    ['a date', new Date(5_000)],
  ])('is refused with the name of the option: %s', (_what, value) => {
    const error = thrownBy(() => parseDuration('requestTimeout', value, anything))
    expect(error).toBeInstanceOf(InvalidOptionError)
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'requestTimeout' })
    expect((error as Error).message).toMatch(/^requestTimeout must be /)
  })

  it('of any other kind is refused, and nothing else is thrown', () => {
    fc.assert(
      fc.property(hostileValue, (value) => {
        const error = thrownBy(() => parseDuration('ttl', value, { min: 1, max: 10 }))
        if (error === undefined) expect(parseDuration('ttl', value, anything)).toBeGreaterThanOrEqual(1)
        else expect(error).toMatchObject({ name: 'InvalidOptionError', option: 'ttl' })
      }),
      { numRuns: 2_000 },
    )
  })

  it('is shown in its largest whole unit, and reads back as itself', () => {
    expect(formatDuration(30_000)).toBe('30s')
    expect(formatDuration(1_500)).toBe('1500ms')
    expect(formatDuration(86_400_000)).toBe('1d')
    expect(formatDuration(0)).toBe('0ms')
    expect(formatDuration(Infinity)).toBe('Infinity')
    fc.assert(
      fc.property(fc.nat(1e12), (milliseconds) => {
        expect(parseDuration('ttl', formatDuration(milliseconds), anything)).toBe(milliseconds)
      }),
    )
  })
})

function thrownBy(action: () => unknown): unknown {
  try {
    action()
    return undefined
  } catch (error) {
    return error
  }
}
