import type { History } from '../history/read-history.ts'
import type { Evidence, Violation } from './checker.ts'

/** They leave alone what a process holds of keys that nobody else wants. */
const harmless = new Set([
  'many-leases',
  'crowd',
  'edited-schedule',
  'deletion',
  'force-release',
  'immediate-release',
  'bad-callbacks',
  'clock-drift',
])

/** Thousands of leases of one process are granted and stay held while nothing is wrong with it, its link or the store. */
export function hoards(evidence: Evidence): readonly Violation[] {
  const { history } = evidence
  return history
    .all('hoarded')
    .filter(({ by, from, at }) => !isDisturbed(evidence, by, from, at))
    .filter(({ leases, held, lost }) => held < leases || lost > 0)
    .map(({ by, leases, held, lost, at }) => ({
      checker: 'many-held',
      what: `${by} wanted ${leases} leases, was granted ${held} and lost ${lost}, and nothing was wrong`,
      at,
    }))
}

/** Whether a fault struck this process or the store; with a file as the store, every process can be in the way. */
function isDisturbed({ history, isFile }: Evidence, by: string, from: number, to: number): boolean {
  const place = placeOf(history, by)
  return history.faults.some(
    (fault) =>
      !harmless.has(fault.kind) &&
      (fault.place === undefined || fault.place === place || isFile) &&
      fault.from < to &&
      fault.to + afterglowMs > from,
  )
}

/** Clients that lost their connection take a while to have another. */
const afterglowMs = 3_000

function placeOf(history: History, by: string): number | undefined {
  return history.all('begun').find((begun) => begun.by === by)?.place
}
