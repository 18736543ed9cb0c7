import type { FailedAnswer } from '../../driver/driver.ts'
import {
  acquireLease,
  describeLease,
  isPurgeable,
  refreshLease,
  releaseLease,
  revokeLease,
} from '../../driver/lease-rules.ts'
import type { LeaseRow, LeaseStep } from '../../driver/lease-rules.ts'
import type { LeaseRecord, LockDriver, ScanPage, ScanRequest } from '../../driver/lock-driver.ts'
import { notify } from './notices.ts'
import type { MemoryNamespace } from './table.ts'

/** Leases in the in-process table. JavaScript runs each call to its end, which makes it atomic. */
export function memoryLocks(table: MemoryNamespace, now: () => number): LockDriver {
  const { leases } = table

  const apply = <Answer>(key: string, rule: (row: LeaseRow | null) => LeaseStep<Answer>): Answer => {
    const { answer, next, wakes } = rule(leases.get(key) ?? null)
    if (next !== null) {
      leases.set(key, next)
      table.floor = Math.max(table.floor, next.fence)
    }
    if (wakes) notify(table, { kind: 'released', key })
    return answer
  }

  return {
    async acquire(requests) {
      const at = now()
      return requests.map((request) =>
        orFailed(() =>
          apply(request.key, (row) => acquireLease(row, request, { now: at, floor: table.floor })),
        ),
      )
    },
    async refresh(requests) {
      const at = now()
      return requests.map((request) => apply(request.key, (row) => refreshLease(row, request, at)))
    },
    async release(requests) {
      const at = now()
      return requests.map((request) => apply(request.key, (row) => releaseLease(row, request, at)))
    },
    async revoke(request) {
      const at = now()
      return apply(request.key, (row) => revokeLease(row, request, at))
    },
    async peek(keys) {
      const at = now()
      return keys.map((key) => describeLease(key, leases.get(key) ?? null, at))
    },
    async scan(request) {
      return scanLeases(leases, request, now())
    },
    async purge({ retentionMs, limit }) {
      const at = now()
      let purged = 0
      for (const [key, row] of leases) {
        if (purged >= limit) break
        if (!isPurgeable(row, retentionMs, at)) continue
        leases.delete(key)
        purged += 1
      }
      return purged
    },
  }
}

function scanLeases(leases: ReadonlyMap<string, LeaseRow>, request: ScanRequest, now: number): ScanPage {
  const { prefix, limit, cursor } = request
  const keys = [...leases.keys()]
    .filter((key) => key.startsWith(prefix) && (cursor === null || key > cursor))
    .toSorted(byCodeUnits)
  const records: LeaseRecord[] = []
  for (const key of keys) {
    const record = describeLease(key, leases.get(key) ?? null, now)
    if (record === null) continue
    if (records.length === limit) return { records, cursor: records.at(-1)?.key ?? cursor }
    records.push(record)
  }
  return { records, cursor: null }
}

function byCodeUnits(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function orFailed<Answer>(item: () => Answer): Answer | FailedAnswer {
  try {
    return item()
  } catch (error) {
    return { outcome: 'failed', error }
  }
}
