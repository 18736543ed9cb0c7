import { judge } from './bars.ts'
import type { Result } from './results.ts'
import type { Scenario } from './scenario.ts'

/** One line of `--json`. */
export function jsonLine(result: Result): string {
  const { scenario, subject, metric, median, ratioToBestPeer, ratioToRaw, min, max } = result
  return JSON.stringify({
    scenario,
    subject,
    metric,
    value: rounded(median),
    ratioToBestPeer: ratioToBestPeer && rounded(ratioToBestPeer),
    ratioToRaw: ratioToRaw && rounded(ratioToRaw),
    min: rounded(min),
    max: rounded(max),
  })
}

/** A scenario's results as a table for people, and in Markdown. */
export function table({ name, what }: Scenario, results: readonly Result[]): string {
  const heading = ['subject', 'metric', 'median (min–max)', '× best peer', '× raw', 'bar']
  const rows = results.map((result) => {
    const verdicts = judge(result).map(({ bar, isMet }) => `${bar}: ${isMet ? 'met' : 'MISSED'}`)
    const { median, min, max, rounds } = result
    const spread = rounds === 1 ? '' : ` (${shown(min)}–${shown(max)})`
    return [
      result.subject,
      result.metric,
      `${shown(median)}${spread}`,
      result.ratioToBestPeer === null ? '' : shown(result.ratioToBestPeer),
      result.ratioToRaw === null ? '' : shown(result.ratioToRaw),
      verdicts.join('; '),
    ]
  })
  const widths = heading.map((_, column) =>
    Math.max(...[heading, ...rows].map((row) => row[column]?.length ?? 0)),
  )
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`
  return [`\n${name}: ${what}\n`, line(heading), rule, ...rows.map(line)].join('\n')
}

/** How many bars are met, and which are not. */
export function verdictLine(results: readonly Result[]): string {
  const judged = results.flatMap((result) => judge(result).map((verdict) => ({ result, ...verdict })))
  const missed = judged.filter(({ isMet }) => !isMet)
  const names = missed.map(({ result, bar }) => `${result.scenario} ${result.metric} ${bar}`)
  const summary = `${judged.length - missed.length} of ${judged.length} bars met`
  return missed.length === 0 ? summary : `${summary}; missed: ${names.join(', ')}`
}

/** Three digits that count. */
function rounded(value: number): number {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(3))
}

function shown(value: number): string {
  return rounded(value).toLocaleString('en', { maximumFractionDigits: 4 })
}
