import { InvalidOptionError } from '../core/errors.ts'
import { holds } from '../core/read-options.ts'

/** A repeatable source of randomness: the same seed gives the same numbers on every machine. */
export interface SeededRandom {
  /** At least 0, less than 1. */
  next(): number
  /** An integer, at least 0 and less than `below`. */
  integer(below: number): number
  /** One of the choices, each as likely as the others. */
  pick<Choice>(choices: readonly Choice[]): Choice
}

/** Marsaglia's xorshift with 32 bits of state: enough to pick the next move of a test. */
export function seededRandom(seed: number): SeededRandom {
  if (typeof seed !== 'number') throw new InvalidOptionError('seed', 'seed must be a number.')
  // The state must never be 0, and close seeds must part at once.
  let state = (Math.imul(seed, 2_654_435_761) ^ 0x9e37_79b9) >>> 0 || 1
  const next = (): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
  return {
    next,
    integer(below) {
      if (typeof below === 'number' && below >= 1) return Math.floor(next() * below)
      throw new InvalidOptionError('below', 'below must be a number, at least 1.')
    },
    pick(choices) {
      if (!holds(() => Array.isArray(choices) && choices.length > 0)) {
        throw new InvalidOptionError(
          'choices',
          'There is nothing to pick from: choices must be an array that is not empty.',
        )
      }
      return choices[Math.floor(next() * choices.length)] as (typeof choices)[number]
    },
  }
}
