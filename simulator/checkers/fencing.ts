import { couldGoBack } from './named-exceptions.ts'
import type { Checker, Violation } from './violation.ts'

/** G2: the fences of a key rise with each grant, are exact, and reach the holder as they were issued. */
export const fencing: Checker = (history) => {
  const violations: Violation[] = []
  const last = new Map<string, { readonly fence: number; readonly token: string }>()
  const fences = new Map<string, number>()
  for (const [index, entry] of history.entries()) {
    if (entry.kind === 'grant') {
      const { at, key, fence, token, isAgain } = entry
      const before = last.get(key)
      if (isAgain && before?.token === token && before.fence === fence) continue
      last.set(key, { fence, token })
      fences.set(token, fence)
      const isFine = Number.isSafeInteger(fence) && (before === undefined || fence > before.fence)
      if (isFine || couldGoBack(history, index)) continue
      violations.push({ promise: 'G2', at, what: `${key} was granted with ${fence} after ${before?.fence}.` })
    } else if (entry.kind === 'belief' && fences.get(entry.token) !== entry.fence) {
      const { at, key, fence, token } = entry
      const what = `A holder of ${key} has the fence ${fence}; the store issued ${fences.get(token)}.`
      violations.push({ promise: 'G2', at, what })
    }
  }
  return violations
}
