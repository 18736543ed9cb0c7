import fc from 'fast-check'
import { InvalidOptionError } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { toStoredKey } from '../../src/core/stored-key.ts'
import { hostileValue } from './hostile-values.ts'

/** Any sequence of UTF-16 code units: NUL and halves of surrogate pairs included. */
const codeUnits = (maxLength: number) =>
  fc
    .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0xd800, 0xdc00, 0xd83d, 0xde00, 0x61, 0x20)), {
      minLength: 1,
      maxLength,
    })
    .map((units) => String.fromCharCode(...units))

const anyKey = fc.oneof(
  codeUnits(40),
  codeUnits(1_000),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }),
  fc.integer({ min: 80, max: 260 }).map((length) => 'é'.repeat(length)),
  fc.string({ minLength: 0, maxLength: 60 }).map((rest) => `sha256:${rest}`),
)

const stored = (key: unknown) => toStoredKey('key', key)

describe('the stored form of a key', () => {
  it('is the key itself where any store can keep it', () => {
    for (const key of [
      'a',
      ' ',
      'A',
      'orders:42',
      'emoji 😀',
      "'; drop table",
      '{hash}tag',
      'x'.repeat(255),
    ]) {
      expect(stored(key)).toBe(key)
    }
  })

  it('is what every store can keep: 1 to 255 bytes, well-formed, without NUL', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const form = stored(key)
        expect(form).not.toBe('')
        expect(Buffer.byteLength(form)).toBeLessThanOrEqual(255)
        expect(form.isWellFormed()).toBe(true)
        expect(form).not.toContain('\0')
        // What a store gives back after encoding is what went in.
        expect(Buffer.from(form).toString()).toBe(form)
      }),
      { numRuns: 2_000 },
    )
  })

  it('differs wherever the keys differ, and is the same every time', () => {
    fc.assert(
      fc.property(anyKey, anyKey, (one, other) => {
        expect(stored(one) === stored(other)).toBe(one === other)
      }),
      { numRuns: 2_000 },
    )
  })

  it('differs for keys that stores and encodings like to mix up', () => {
    const long = 'x'.repeat(300)
    const keys = [
      'Key',
      'key',
      'key ',
      ' key',
      'key\0',
      'key\0\0',
      'u\ud800',
      'u\ud801',
      'u\ufffd',
      '\udc00\ud800',
      '\ud800\udc00',
      'é',
      'e\u0301',
      long,
      `${long} `,
      long.toUpperCase(),
      '😀'.repeat(1_000),
      '😀'.repeat(999),
    ]
    expect(new Set(keys.map(stored)).size).toBe(keys.length)
  })

  it('cannot be reached by writing the reserved prefix into a key', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const form = stored(key)
        if (form === key) return
        expect(form).toMatch(/^sha256:[\w-]{43}$/)
        expect(stored(form)).not.toBe(form)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is counted in bytes, not in characters', () => {
    expect(stored('é'.repeat(127))).toBe('é'.repeat(127))
    expect(stored('é'.repeat(128))).toMatch(/^sha256:/)
    expect(stored('x'.repeat(255))).toBe('x'.repeat(255))
    expect(stored('x'.repeat(256))).toMatch(/^sha256:/)
    expect(stored('😀'.repeat(63))).toBe('😀'.repeat(63))
    expect(stored('😀'.repeat(64))).toMatch(/^sha256:/)
  })

  it('does not exist for what is no text, or empty', () => {
    fc.assert(
      fc.property(hostileValue, (value) => {
        if (typeof value === 'string' && value !== '') return
        expect(() => toStoredKey('namespace', value)).toThrow(InvalidOptionError)
        expect(() => toStoredKey('namespace', value)).toThrow(/^namespace must be a non-empty string; got /)
      }),
    )
  })
})
