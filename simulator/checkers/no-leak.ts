import type { Checker, Violation } from './violation.ts'

/** G9: what is closed leaves nothing and sends nothing, everything settles, and no rejection is unhandled. */
export const noLeak: Checker = (history) => {
  const violations: Violation[] = []
  const closed = new Set<string>()
  const broken = (at: number, what: string): void => void violations.push({ promise: 'G9', at, what })
  for (const entry of history) {
    const { at } = entry
    if (entry.kind === 'closed') closed.add(entry.by)
    if (entry.kind === 'call' && closed.has(entry.by))
      broken(at, `${entry.by} calls ${entry.verb} after it was closed.`)
    if (entry.kind === 'leak') broken(at, `${entry.by} left ${entry.what}.`)
    if (entry.kind === 'unsettled') broken(at, `${entry.by}: ${entry.what} did not settle.`)
    if (entry.kind === 'unhandled') broken(at, `Unhandled: ${entry.message}`)
  }
  return violations
}
