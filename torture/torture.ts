import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type LockService, type RunHistoryEntry, TaskScheduler } from 'leasehold'
import { seededRandom } from 'leasehold/testing'
import type { TortureArguments } from './arguments.ts'
import { allCheckers } from './checkers/all-checkers.ts'
import type { Evidence, Violation } from './checkers/checker.ts'
import { Fleet } from './fleet.ts'
import { Journal } from './history/journal.ts'
import { readHistory } from './history/read-history.ts'
import { now } from './history/records.ts'
import { Administrator } from './nemesis/administrator.ts'
import { Nemesis } from './nemesis/nemesis.ts'
import type { Scene } from './nemesis/scene.ts'
import { FencedResource } from './resource.ts'
import { startStore, type Store } from './store.ts'
import { type Summary, summarize } from './summary.ts'
import { editedTask, taskPlans } from './task-plans.ts'
import { plantedBugs } from './worker/planted-bugs.ts'

const ttlMs = 1_000
/** Of the workers. */
const requestTimeoutMs = 500
const namespace = 'torture'
const hotKeys = ['hot-1', 'hot-2', 'hot-3', 'hot-4']
const coldKeys = Array.from({ length: 40 }, (_, index) => `cold-${index}`)
/** Long enough that every key is wanted, and every slot that was lost is retried. */
const calmMs = 6_000

export interface Verdict {
  readonly summary: Summary
  readonly violations: readonly Violation[]
}

/** One run: workers, faults, a calm end; then the checkers. @param folder where the histories go */
export async function torture(args: TortureArguments, folder: string): Promise<Verdict> {
  const { plant } = args
  const random = seededRandom(args.seed)
  const store = await startStore(args.driver, args.workers)
  const journal = new Journal(`${folder}/observer.jsonl`, 'observer')
  const operator = await connect(store.url, { namespace, ttl: ttlMs, requestTimeout: 2_000 })
  try {
    const fleet = new Fleet({
      folder,
      random,
      journal,
      resource: new FencedResource(journal, plant !== 'resource-without-fences'),
      clients: store.clients,
      orders: {
        namespace,
        ttlMs,
        requestTimeoutMs,
        hotKeys,
        coldKeys,
        plant: plant !== null && plant in plantedBugs ? plant : null,
      },
      clocksAreWrong:
        store.server !== null && [null, 'wrong-clocks', 'clock-step', 'clock-drift'].includes(args.nemesis),
      disguised: args.nemesis === 'same-identity' || (args.nemesis === null && random.integer(2) === 0),
      connections: args.nemesis === 'pool-exhausted' ? [1, 2] : args.nemesis === null ? [1, 2, 10] : [10],
      links: store.links,
    })
    await fleet.ready()
    const massKeys: string[] = []
    const faults = await faultsOf(args, { fleet, store, random, operator, journal, massKeys })
    journal.write({ is: 'calm' })
    await sleep(calmMs)
    const workedUntil = Date.now()
    await fleet.leave()
    await probe(operator, journal, massKeys)
    const evidence: Evidence = {
      history: readHistory(folder),
      ttlMs,
      requestTimeoutMs,
      isFile: store.server === null,
      tasks: await readTasks(operator, plant),
      workedUntil,
      wallMinusBoot: Date.now() - now(),
    }
    const violations = allCheckers.flatMap((check) => check(evidence)).toSorted((a, b) => a.at - b.at)
    return { summary: summarize(args, evidence, violations, faults), violations }
  } finally {
    await operator.close()
    await store.close()
    journal.close()
  }
}

async function faultsOf(
  args: TortureArguments,
  {
    fleet,
    store,
    random,
    operator,
    journal,
    massKeys,
  }: {
    fleet: Fleet
    store: Store
    random: Scene['random']
    operator: LockService
    journal: Journal
    massKeys: string[]
  },
): Promise<Readonly<Record<string, number>>> {
  const over = AbortSignal.timeout(args.seconds * 1_000)
  const scene: Scene = {
    fleet,
    store,
    random,
    ttlMs,
    namespace,
    hotKeys,
    administrator: new Administrator(store, namespace),
    operator,
    massKeys,
    isAlone: args.nemesis === 'many-leases',
    over,
    wait: (ms) => sleep(ms, undefined, { signal: over }).catch(() => {}),
    except: (kind, of) => journal.write({ is: 'fault', kind, phase: 'begin', exception: { kind, of } }),
  }
  const nemesis = new Nemesis(scene, journal, args.nemesis)
  await nemesis.run()
  return nemesis.faults
}

/** Once all have ended, whatever they held is free one ttl later at most. */
async function probe(operator: LockService, journal: Journal, massKeys: readonly string[]): Promise<void> {
  const someOfMany = massKeys.flatMap((key) =>
    key.startsWith('hoard') ? [0, 1, 999, 1_999].map((index) => `${key}-${index}`) : [key],
  )
  await Promise.all(
    [...hotKeys, ...coldKeys, ...someOfMany].map(async (key) => {
      const from = now()
      const of = `lock:${key}`
      try {
        const lease = await operator.acquire(key, { wait: 8_000 })
        journal.write({ is: 'probe', of, outcome: lease === null ? 'held' : 'granted', tookMs: now() - from })
        await lease?.release()
      } catch (error) {
        journal.write({ is: 'probe', of, outcome: String(error), tookMs: now() - from })
      }
    }),
  )
}

async function readTasks(
  operator: LockService,
  plant: string | null,
): Promise<ReadonlyMap<string, readonly RunHistoryEntry[]>> {
  const scheduler = new TaskScheduler({ locks: operator })
  const tasks = new Map<string, readonly RunHistoryEntry[]>()
  for (const name of [...Object.keys(taskPlans), editedTask]) {
    const entries = await scheduler.history(name, { limit: 10_000 })
    tasks.set(
      name,
      entries.filter((entry) => !isForgotten(entry, plant)),
    )
  }
  return tasks
}

/** A run log with a bug in it. */
function isForgotten({ state, reason }: RunHistoryEntry, plant: string | null): boolean {
  if (plant === 'run-log-with-holes') return state === 'skipped'
  return plant === 'edits-not-logged' && reason === 'edited'
}
