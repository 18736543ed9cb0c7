import { InvalidOptionError, quoted } from './errors.ts'

/** A length of time in text: `'500ms'`, `'5s'`, `'15m'`, `'24h'`, `'7d'`; decimals are allowed (`'1.5s'`). */
export type DurationString = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** Milliseconds, or a text with a unit. */
export type Duration = number | DurationString

export interface DurationRange {
  /** The least value allowed, in milliseconds. */
  readonly min: number
  /** The greatest value allowed, in milliseconds; `Infinity` allows `Infinity` itself. */
  readonly max: number
}

const millisecondsPer: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

export const year: number = 365 * 86_400_000

/**
 * Reads a duration into whole milliseconds (rounded up).
 *
 * @param option the option's name, for the error
 * @throws InvalidOptionError for another type, an unknown unit, NaN, or a value out of range
 */
export function parseDuration(option: string, value: unknown, range: DurationRange): number {
  const milliseconds = toMilliseconds(value)
  if (milliseconds === undefined || Number.isNaN(milliseconds)) {
    throw new InvalidOptionError(
      option,
      `${option} must be a number of milliseconds or a text such as '500ms', '5s', '15m', '24h' or '7d'; got ${shown(value)}.`,
    )
  }
  if (milliseconds < range.min || milliseconds > range.max) {
    throw new InvalidOptionError(option, `${option} must be ${describeRange(range)}; got ${shown(value)}.`)
  }
  return Math.ceil(milliseconds)
}

function toMilliseconds(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string') return undefined
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value.trim())
  const unit = match?.[2] === undefined ? undefined : millisecondsPer[match[2]]
  return match?.[1] === undefined || unit === undefined ? undefined : Number(match[1]) * unit
}

/** `1500` → `'1500ms'`, `30000` → `'30s'`: the largest unit that divides it, for messages. */
export function formatDuration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return String(milliseconds)
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = millisecondsPer[unit] as number
    if (milliseconds >= size && milliseconds % size === 0) return `${milliseconds / size}${unit}`
  }
  return `${milliseconds}ms`
}

function describeRange({ min, max }: DurationRange): string {
  return max === Infinity
    ? `at least ${formatDuration(min)}`
    : `between ${formatDuration(min)} and ${formatDuration(max)}`
}

/** A value that was refused, for messages: short, and without running code of its own. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value)
    case 'object':
      return value === null ? 'null' : 'an object'
    case 'function':
      return 'a function'
    default:
      return String(value)
  }
}
