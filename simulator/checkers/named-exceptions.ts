import type { Entry } from '../history.ts'

/*
 * Which named exceptions touched a key in a part of a history. A checker asks this about the one pair of grants that it
 * found at odds, so an exception excuses nothing but what came of it.
 */

/** Between these entries the store may have let go of a key that was held. */
export function couldFreeEarly(history: readonly Entry[], key: string, from: number, to: number): boolean {
  return history.slice(from, to).some((entry) => {
    if (entry.kind !== 'exception') return false
    const { what, byMs } = entry
    if (what === 'lose-data') return true
    return what === 'step-store-clock' ? byMs > 0 : entry.key === key
  })
}

/** Before this entry the store may have gone back in time: it lost its records, and its clock was set back. */
export function couldGoBack(history: readonly Entry[], to: number): boolean {
  const hasLostData = history
    .slice(0, to)
    .some((entry) => entry.kind === 'exception' && entry.what === 'lose-data')
  return hasLostData && wasClockSetBack(history, to)
}

/** Before this entry somebody set the store's clock. */
export function wasClockStepped(history: readonly Entry[], to: number): boolean {
  return history.slice(0, to).some((entry) => entry.kind === 'exception' && entry.what === 'step-store-clock')
}

export function wasClockSetBack(history: readonly Entry[], to: number): boolean {
  return history
    .slice(0, to)
    .some((entry) => entry.kind === 'exception' && entry.what === 'step-store-clock' && entry.byMs < 0)
}
