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
    integer: (below) => Math.floor(next() * below),
    pick: (choices) => {
      const choice = choices[Math.floor(next() * choices.length)]
      if (choices.length === 0) throw new RangeError('There is nothing to pick from.')
      return choice as (typeof choices)[number]
    },
  }
}
