import type { Checker, Violation } from './violation.ts'

/** The calls of one process about its tasks and locks within a second, at most. */
const mostCalls = 250

/** G9: nothing spins: however much goes wrong, a process asks the store no more often than it has something to ask. */
export const steadyPace: Checker = (history) => {
  const violations: Violation[] = []
  const recent = new Map<string, number[]>()
  const told = new Set<string>()
  for (const entry of history) {
    if (entry.kind !== 'call') continue
    const { at, by, verb } = entry
    const calls = (recent.get(by) ?? []).filter((one) => one > at - 1_000)
    recent.set(by, [...calls, at])
    if (calls.length < mostCalls || told.has(by)) continue
    told.add(by)
    violations.push({
      promise: 'G9',
      at,
      what: `${by} calls ${verb} for the ${mostCalls}th time within a second.`,
    })
  }
  return violations
}
