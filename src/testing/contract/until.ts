import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Looks again and again until the answer is what is waited for, and answers it. Time is never guessed: behaviours wait
 * for what the store says. Gives up after `withinMs`, so that a store that never says it fails and does not hang.
 */
export async function until<Seen>(
  what: string,
  look: () => Promise<Seen>,
  isIt: (seen: Seen) => boolean,
  withinMs = 8_000,
): Promise<Seen> {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    const seen = await look()
    if (isIt(seen)) return seen
    if (performance.now() > giveUpAt) {
      assert.fail(`Waited ${withinMs} ms in vain until ${what}; seen last: ${JSON.stringify(seen)}`)
    }
    await pause(4)
  }
}
