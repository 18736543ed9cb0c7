import { DriverFault } from '../../../src/core/errors.ts'
import type { DriverSession } from 'leasehold/driver'
import { seededRandom } from '../../../src/testing/seeded-random.ts'
import { asking } from './database.ts'

export interface StressReport {
  readonly granted: number
  readonly renewed: number
  readonly released: number
  readonly busy: number
  /** Rejected calls by kind of fault and SQLSTATE. */
  readonly faults: Readonly<Record<string, number>>
  /** What must never happen. */
  readonly violations: readonly string[]
}

interface Belief {
  readonly token: string
  readonly fence: number
  /** Until when its holder trusts the lease, on this process's monotonic clock. */
  until: number
}

/**
 * Several nodes take, renew and give back random sets of keys in random order, with ttls short enough to lapse, and
 * every grant is held against what the other nodes believe at that moment.
 */
export async function stress(
  sessions: readonly DriverSession[],
  { keys, maxBatch, forMs }: { readonly keys: number; readonly maxBatch: number; readonly forMs: number },
): Promise<StressReport> {
  const beliefs = new Map<string, Belief>()
  const lastFence = new Map<string, number>()
  const violations: string[] = []
  const faults: Record<string, number> = {}
  const counts = { granted: 0, renewed: 0, released: 0, busy: 0 }
  const endAt = performance.now() + forMs

  const attempting = async (action: () => Promise<void>) => {
    try {
      await action()
    } catch (error) {
      if (!(error instanceof DriverFault)) throw error
      const code = (error.cause as { code?: string } | undefined)?.code ?? ''
      faults[`${error.kind} ${code}`] = (faults[`${error.kind} ${code}`] ?? 0) + 1
    }
  }

  const work = async (session: DriverSession, index: number) => {
    const random = seededRandom(index + 1)
    const own = new Map<string, Belief>()
    const someKeys = () => {
      const chosen = new Set<string>()
      for (let count = 1 + random.integer(maxBatch); count > 0; count--)
        chosen.add(`key-${random.integer(keys)}`)
      return [...chosen].toSorted(() => random.next() - 0.5)
    }
    const call = () => ({ attempt: 1, lockedRows: random.integer(4) === 0 ? 'wait' : 'skip' }) as const

    const acquire = async () => {
      const requests = someKeys()
        .filter((key) => !own.has(key))
        .map((key) => asking(key, { ttlMs: 30 + random.integer(120), waitingMs: random.integer(2) * 200 }))
      if (requests.length === 0) return
      const sentAt = performance.now()
      const answers = await session.locks.acquire(requests, call())
      const now = performance.now()
      for (const [at, answer] of answers.entries()) {
        const { key, token } = requests[at]!
        if (answer.outcome === 'busy') counts.busy++
        if (answer.outcome !== 'granted') continue
        const until = sentAt + answer.remainingMs
        // Dead on arrival: nobody trusted it for a moment.
        if (until <= now) continue
        counts.granted++
        const other = beliefs.get(key)
        if (other !== undefined && other.until > now)
          violations.push(`${key} granted while ${other.token} trusts it`)
        if (answer.fence <= (lastFence.get(key) ?? 0)) violations.push(`${key} fence ${answer.fence}`)
        lastFence.set(key, answer.fence)
        const belief = { token, fence: answer.fence, until }
        beliefs.set(key, belief)
        own.set(key, belief)
      }
    }

    const refresh = async () => {
      const held = [...own].filter(() => random.integer(2) === 0).toSorted(() => random.next() - 0.5)
      if (held.length === 0) return
      const sentAt = performance.now()
      const requests = held.map(([key, { token }]) => ({ key, token, ttlMs: 30 + random.integer(120) }))
      const answers = await session.locks.refresh(requests, call())
      for (const [at, answer] of answers.entries()) {
        const [key, belief] = held[at]!
        if (answer.outcome === 'busy') counts.busy++
        if (answer.outcome === 'lost') {
          if (belief.until > performance.now()) violations.push(`${key} lost before its deadline`)
          own.delete(key)
        }
        if (answer.outcome !== 'held') continue
        counts.renewed++
        const until = sentAt + answer.remainingMs
        // Dead on arrival, since this process stood still for so long: nobody trusted it any more.
        if (beliefs.get(key) !== belief && until <= performance.now()) {
          own.delete(key)
          continue
        }
        if (beliefs.get(key) !== belief) violations.push(`${key} renewed after it was granted to another`)
        belief.until = Math.max(belief.until, until)
      }
    }

    const release = async () => {
      const held = [...own].filter(() => random.integer(3) > 0).toSorted(() => random.next() - 0.5)
      if (held.length === 0) return
      for (const [, belief] of held) belief.until = 0
      const requests = held.map(([key, { token }]) => ({ key, token }))
      for (const [key] of held) own.delete(key)
      const answers = await session.locks.release(requests, call())
      for (const { outcome } of answers) {
        if (outcome === 'released') counts.released++
        if (outcome === 'busy') counts.busy++
      }
    }

    // So that keys are taken for the first time again and again, and meet deletions.
    const purge = async () => void (await session.locks.purge({ retentionMs: 0, limit: keys }, call()))

    const actions = [acquire, acquire, acquire, refresh, refresh, refresh, release, release, purge]
    while (performance.now() < endAt) await attempting(random.pick(actions))
  }

  await Promise.all(sessions.map(work))
  return { ...counts, faults, violations }
}
