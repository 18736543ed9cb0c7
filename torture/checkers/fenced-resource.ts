import type { Evidence, Violation } from './checker.ts'

/**
 * A resource that compares fences loses no write that it accepted: each holder writes what it read plus one, so every
 * accepted write is one more than the accepted write before it. No exception loosens this.
 */
export function fencedResource({ history }: Evidence): readonly Violation[] {
  const found: Violation[] = []
  const values = new Map<string, number>()
  for (const { of, verb, fence, value, accepted, at } of history.all('resource')) {
    if (verb !== 'write' || !accepted) continue
    const before = values.get(of) ?? 0
    if (value !== before + 1) {
      const what = `${of}: the write of ${value} under fence ${fence} replaced ${before}: a write was lost`
      found.push({ checker: 'fenced-resource', what, at })
    }
    values.set(of, value)
  }
  return found
}
