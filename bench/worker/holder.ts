import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertExcludes, cycle, type Hold } from '../mutex.ts'
import { type Family, openMutex } from '../subjects/families.ts'
import type { Verbs } from './protocol.ts'

export interface HolderSetup {
  readonly family: Family
  readonly subject: string
  /** Of the store; for files their folder. */
  readonly url: string
  readonly application?: string
}

/** On the monotonic clock of the host, which all processes share: in milliseconds. */
export type Interval = readonly [grantedAt: number, releasedAt: number]

/** Holds keys by one subject, waits for them, cycles them. */
export async function openHolder({ family, subject, url, application }: HolderSetup): Promise<Verbs> {
  const mutex = await openMutex(family, subject, url, application)
  let held: Hold | null = null
  let grants = 0

  /** Every waiter takes the key once, and has it for a time. */
  const queue = async (key: string, waiters: number, holdMs: number): Promise<Interval[]> => {
    const intervals: Interval[] = []
    const wait = async (): Promise<void> => {
      const hold = await mutex.acquire(key)
      const grantedAt = hostNow()
      grants += 1
      await sleep(holdMs)
      const releasedAt = hostNow()
      await hold.release()
      intervals.push([grantedAt, releasedAt])
    }
    await Promise.all(Array.from({ length: waiters }, wait))
    return intervals
  }

  return {
    async assertExcludes() {
      await assertExcludes(subject, mutex)
    },
    async cycle(callers: number, ms: number) {
      return cycle(mutex, callers, ms)
    },
    /** What `cycle` does, and where its time went. */
    async profile(callers: number, ms: number) {
      const session = new Session()
      session.connect()
      await session.post('Profiler.enable')
      await session.post('Profiler.start')
      const cyclesPerSecond = await cycle(mutex, callers, ms)
      const { profile } = await session.post('Profiler.stop')
      session.disconnect()
      return { cyclesPerSecond, profile }
    },
    async hold(key: string) {
      held = await mutex.tryAcquire(key)
      if (held === null) throw new Error(`${key} is held by somebody else`)
    },
    async free() {
      await held?.release()
      held = null
    },
    queue,
    /** Leaves waiters behind, until the process ends. */
    async beginToWait(key: string, waiters: number) {
      queue(key, waiters, 0).catch(() => {})
    },
    async grants() {
      return grants
    },
    async close() {
      await mutex.close()
    },
  }
}

function hostNow(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
