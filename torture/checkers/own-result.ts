import type { Evidence, Violation } from './checker.ts'

/** G8: what became of lease and release never takes the place of what the callback returned or threw. */
export function ownResult({ history }: Evidence): readonly Violation[] {
  return history
    .all('returned')
    .filter(({ wanted, got }) => wanted !== got)
    .map(({ by, of, fence, wanted, got, at }) => ({
      checker: 'own-result',
      what: `${of}: the callback of ${by} (fence ${fence}): ${wanted}, and its caller was told: ${got}`,
      at,
    }))
}
