import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type LockService, type RunHistoryEntry, TaskScheduler } from 'leasehold'
import { seededRandom } from 'leasehold/testing'
import type { Evidence } from '../checkers/checker.ts'
import { Fleet } from '../fleet.ts'
import { Journal } from '../history/journal.ts'
import { readHistory } from '../history/read-history.ts'
import { type ExceptionKind, now } from '../history/records.ts'
import { FencedResource } from '../resource.ts'
import { editedTask, taskPlans } from '../task-plans.ts'
import type { Strike, Upheaval } from './upheaval.ts'

/** Long enough for a failover to end while leases of before it are still trusted. */
const ttlMs = 5_000
const namespace = 'exceptions'
const requestTimeoutMs = 500
const hotKeys = Array.from({ length: 8 }, (_, index) => `hot-${index}`)
const coldKeys = Array.from({ length: 40 }, (_, index) => `cold-${index}`)

/** One time that the store was struck. Moments are milliseconds since this machine booted. */
export interface Struck extends Strike {
  readonly from: number
  readonly to: number
}

export interface Measured {
  readonly evidence: Evidence
  readonly strikes: readonly Struck[]
}

export interface MeasureOptions {
  readonly kind: ExceptionKind
  readonly times: number
  readonly seed: number
  /** Where the histories go. */
  readonly folder: string
}

/** Strikes a store that a fleet is at work on, so many times, and answers what everybody saw. */
export async function measure(
  upheaval: Upheaval,
  { kind, times, seed, folder }: MeasureOptions,
): Promise<Measured> {
  const random = seededRandom(seed)
  const journal = new Journal(`${folder}/observer.jsonl`, 'observer')
  const operator = await connect(upheaval.operatorUrl, { namespace, ttl: ttlMs, requestTimeout: 2_000 })
  try {
    const fleet = new Fleet({
      folder,
      random,
      journal,
      resource: new FencedResource(journal, true),
      clients: upheaval.ways.map(({ client, by }) => [client, by] as const),
      orders: { namespace, ttlMs, requestTimeoutMs, hotKeys, coldKeys, plant: null },
      clocksAreWrong: false,
      links: upheaval.ways.map(({ url }) => ({ url, proxy: null })),
    })
    await sleep(3_000)
    const strikes: Struck[] = []
    for (let time = 1; time <= times; time++) {
      const from = now()
      const except = (): void =>
        journal.write({ is: 'fault', kind, phase: 'begin', exception: { kind, of: null } })
      const strike = await upheaval.strike({ random, except, wait: sleep })
      journal.write({ is: 'fault', kind, phase: 'end' })
      await upheaval.repair(operator, ttlMs)
      await sleep(ttlMs / 2 + random.integer(1_000))
      strikes.push({ ...strike, from, to: now() })
      console.error(`${time}/${times}: ${JSON.stringify(strike)}`)
    }
    journal.write({ is: 'calm' })
    await sleep(6_000)
    const workedUntil = Date.now()
    await fleet.leave()
    await probe(operator, journal)
    const evidence: Evidence = {
      history: readHistory(folder),
      ttlMs,
      requestTimeoutMs,
      isFile: false,
      tasks: await readTasks(operator),
      workedUntil,
      wallMinusBoot: Date.now() - now(),
    }
    return { evidence, strikes }
  } finally {
    await operator.close()
    journal.close()
  }
}

/** Once all have ended, whatever they held is free one ttl later at most. */
async function probe(operator: LockService, journal: Journal): Promise<void> {
  const one = async (key: string): Promise<void> => {
    const from = now()
    const outcome = await operator.acquire(key, { wait: 2 * ttlMs }).then(
      async (lease) => {
        await lease?.release()
        return lease === null ? 'held' : 'granted'
      },
      (error: unknown) => String(error),
    )
    journal.write({ is: 'probe', of: `lock:${key}`, outcome, tookMs: now() - from })
  }
  await Promise.all([...hotKeys, ...coldKeys].map(one))
}

async function readTasks(operator: LockService): Promise<ReadonlyMap<string, readonly RunHistoryEntry[]>> {
  const scheduler = new TaskScheduler({ locks: operator })
  const names = [...Object.keys(taskPlans), editedTask]
  const histories = await Promise.all(names.map((name) => scheduler.history(name, { limit: 10_000 })))
  return new Map(names.map((name, index) => [name, histories[index] ?? []]))
}
