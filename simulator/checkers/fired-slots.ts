import type { Entry } from '../history.ts'
import type { Plan } from '../plan.ts'
import type { EntryOf, Violation } from './violation.ts'

/**
 * G5 and G7 for a task that something else fires: `'ran'` means that the function was called for this very slot,
 * `'skipped'` that it was not, since the store has decided the slot or one after it; and one fire of a slot runs it.
 */
export function firedSlots(history: readonly Entry[], { fired }: Plan): readonly Violation[] {
  const violations: Violation[] = []
  if (fired === null) return violations
  const losesData = history.some((entry) => entry.kind === 'exception' && entry.what === 'lose-data')
  const ran = new Set<number>()
  let mark = -Infinity
  const check = ({ at, by, slot, outcome, hasRun }: EntryOf<'fired'>): void => {
    const name = `${by} fired ${fired.name} ${slot}`
    if ((outcome === 'ran') !== hasRun)
      violations.push({
        promise: 'G7',
        at,
        what: `${name}: ${outcome}, and it was ${hasRun ? '' : 'not '}run.`,
      })
    if (outcome === 'skipped' && mark < slot)
      violations.push({ promise: 'G7', at, what: `${name}: skipped, and the store has not decided it.` })
    if (outcome === 'ran' && ran.has(slot) && !losesData)
      violations.push({ promise: 'G5', at, what: `${name}, and it ran before.` })
    if (outcome === 'ran') ran.add(slot)
  }
  for (const entry of history) {
    if (!('task' in entry) || entry.task !== fired.name) continue
    if (entry.kind === 'claim' || entry.kind === 'registration') mark = Math.max(mark, entry.mark)
    if (entry.kind === 'fired') check(entry)
  }
  return violations
}
