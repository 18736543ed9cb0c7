import type { Entry } from '../history.ts'
import { couldGoBack } from './named-exceptions.ts'
import type { Checker, EntryOf, Violation } from './violation.ts'

/** The errors that each call may end with when nothing but its surroundings is wrong. */
const expected: Readonly<Record<EntryOf<'error'>['during'], RegExp>> = {
  acquire: /^(ABORTED|CLOSED|STORE_UNAVAILABLE)$/,
  extend: /^(LEASE_LOST|STORE_UNAVAILABLE)$/,
  // STORE_UNUSABLE: the store refused this very item.
  revoke: /^(CLOSED|STORE_UNAVAILABLE|STORE_UNUSABLE)$/,
  look: /^(CLOSED|STORE_UNAVAILABLE)$/,
  // Unknown until somebody has registered it; a range without a decided slot; and refused, as above.
  order: /^(CLOSED|STORE_UNAVAILABLE|STORE_UNUSABLE|UNKNOWN_TASK|INVALID_OPTION)$/,
  fire: /^(CLOSED|STORE_UNAVAILABLE|STORE_UNUSABLE)$/,
  // STORE_UNUSABLE: closed or refused while it started.
  scheduler: /^(CLOSED|STORE_UNUSABLE)$/,
  release: /^never$/,
  stop: /^never$/,
  close: /^never$/,
}

/**
 * G7: `null` means that the store said since the call that the key is held, or gave it to another caller of the same
 * process; a key that is looked up is free or held as the store said since; and errors are those that are documented.
 */
export const honestAnswers: Checker = (history) => {
  const violations: Violation[] = []
  const asked = new Map<number, number>()
  const broken = (at: number, what: string): void => void violations.push({ promise: 'G7', at, what })
  const wasSaid = (
    ask: number,
    by: string,
    key: string,
    to: number,
    kinds: readonly Entry['kind'][],
  ): boolean =>
    history
      .slice(asked.get(ask), to)
      .some(
        (entry) =>
          kinds.includes(entry.kind) &&
          'key' in entry &&
          entry.key === key &&
          'by' in entry &&
          entry.by === by,
      )
  for (const [index, entry] of history.entries()) {
    if (entry.kind === 'asks') asked.set(entry.ask, index)
    if (entry.kind === 'null') {
      const { at, by, ask, key } = entry
      if (!wasSaid(ask, by, key, index, ['refusal', 'grant']))
        broken(at, `${by} was told that ${key} is held, and the store never said so.`)
    } else if (entry.kind === 'looked') {
      const { at, by, ask, key, isHeld } = entry
      if (!wasSaid(ask, by, key, index, [isHeld ? 'refusal' : 'emptiness']))
        broken(at, `${by} saw ${key} ${isHeld ? 'held' : 'free'}, and the store never said so.`)
    } else if (entry.kind === 'error') {
      const { at, by, during, key, code, message } = entry
      const wentBack = code === 'FENCE_UNSAFE' && couldGoBack(history, index)
      if (!expected[during].test(code) && !wentBack && during !== 'release')
        broken(at, `${by}: ${during} ${key} ended with ${code}: ${message}`)
    }
  }
  return violations
}
