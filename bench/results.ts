import type { Finding, Metric, Role } from './scenario.ts'
import { type Summary, summarize } from './statistics.ts'

export interface Result extends Summary {
  readonly scenario: string
  readonly subject: string
  readonly role: Role
  readonly metric: Metric
  /** The median divided by the best peer's: above 1 is better where more is better, below 1 where less is. */
  readonly ratioToBestPeer: number | null
  /** The median divided by that of the raw subject. */
  readonly ratioToRaw: number | null
}

const moreIsBetter: ReadonlySet<Metric> = new Set<Metric>(['opsPerSecond', 'hotUpdatesPercent'])

/** Compares what was found in one scenario with each other. */
export function compare(scenario: string, findings: readonly Finding[]): Result[] {
  return findings.map(({ subject, role, metric, values }) => {
    const summary = summarize(values)
    const others = findings.filter((other) => other.metric === metric && other.subject !== subject)
    const medians = (wanted: Role) =>
      others.filter((other) => other.role === wanted).map((other) => summarize(other.values).median)
    const best = moreIsBetter.has(metric) ? Math.max : Math.min
    return {
      scenario,
      subject,
      role,
      metric,
      ...summary,
      ratioToBestPeer: ratio(summary.median, medians('peer'), best),
      ratioToRaw: ratio(summary.median, medians('raw'), best),
    }
  })
}

function ratio(
  value: number,
  others: readonly number[],
  best: (...values: number[]) => number,
): number | null {
  if (others.length === 0) return null
  const other = best(...others)
  return other === 0 ? null : value / other
}
