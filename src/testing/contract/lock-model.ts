import assert from 'node:assert/strict'
import {
  acquireLease,
  describeLease,
  type LeaseRow,
  type LeaseStep,
  refreshLease,
  releaseLease,
  revokeLease,
} from '../../driver/lease-rules.ts'
import type { ContractBehaviour } from '../contract-subject.ts'
import { type SeededRandom, seededRandom } from '../seeded-random.ts'
import type { Actor } from './actor.ts'
import { group, longMs, type Stage } from './stage.ts'
import { newToken, plainHolder } from './tokens.ts'
import { until } from './until.ts'

/*
 * Long random histories of calls, answered by the driver and by the rules written down in TypeScript. What depends on the
 * very moment has behaviours of its own.
 */
export function lockModel(seeds: readonly number[]): readonly ContractBehaviour[] {
  return group('locks: random histories', (it) => {
    for (const seed of seeds) {
      it(`every answer is the one that the rules give (seed ${seed})`, async (stage) => {
        await playRandomHistory(stage, seededRandom(seed), 150)
      })
    }
  })
}

const keys = ['a', 'b', 'c', 'd']

async function playRandomHistory(stage: Stage, random: SeededRandom, moves: number): Promise<void> {
  const rows = new Map<string, LeaseRow>()
  const tokens = new Map<string, string[]>(keys.map((key) => [key, [newToken(), newToken()]]))
  const fences = new Map<string, number[]>(keys.map((key) => [key, [1]]))
  const history: string[] = []

  /** Applies a rule to the model; what the store alone can know is copied from its answer. */
  const expect = <Answer extends { outcome: string }>(
    key: string,
    rule: (row: LeaseRow | null) => LeaseStep<Answer>,
    actual: object,
    move: string,
  ): void => {
    const { answer, next } = rule(rows.get(key) ?? null)
    history.push(`${move} ${key} -> ${JSON.stringify(actual)}`)
    assert.deepEqual(roughly(actual), roughly(learnFence(answer, actual)), history.slice(-12).join('\n'))
    if (next === null) return
    const fence = 'fence' in actual && answer.outcome === 'granted' ? (actual.fence as number) : next.fence
    if (answer.outcome === 'granted') {
      const last = rows.get(key)?.fence ?? 0
      assert.ok(next.fence === last ? fence === last : fence > last, `${move}: fence ${fence} after ${last}`)
      fences.get(key)?.push(fence)
    }
    rows.set(key, { ...next, fence })
  }

  for (let count = 0; count < moves; count++) {
    const node: Actor = random.pick([stage.first, stage.second])
    const key = random.pick(keys)
    const now = Date.now()
    const known = tokens.get(key) as string[]
    const token = random.pick(known.slice(-4))
    switch (random.integer(10)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const fresh = random.integer(3) === 0 ? newToken() : token
        if (fresh !== token) known.push(fresh)
        // Some lapse at once, and are waited for, so that it is never open whether a lease has lapsed.
        const isBrief = random.integer(5) === 0
        const ttlMs = isBrief ? stage.abilities.minTtlMs : longMs * (1 + random.integer(5))
        const waitingMs = random.integer(2) * longMs
        const request = { key, token: fresh, ttlMs, waitingMs, holder: plainHolder }
        const answer = await node.acquire(key, request)
        if (answer.outcome === 'granted' && answer.remainingMs <= ttlMs && isBrief) await untilFree(node, key)
        expect(
          key,
          (row) => acquireLease(row, request, { now, floor: 0 }),
          answer,
          `acquire ${fresh.slice(0, 4)}`,
        )
        break
      }
      case 4:
      case 5: {
        const request = { key, token, ttlMs: longMs * (1 + random.integer(5)) }
        const answer = await node.refresh(request, request.ttlMs)
        expect(key, (row) => refreshLease(row, request, now), answer, `refresh ${token.slice(0, 4)}`)
        break
      }
      case 6:
      case 7: {
        const outcome = await node.release({ key, token })
        expect(
          key,
          (row) => releaseLease(row, { key, token }, now),
          { outcome },
          `release ${token.slice(0, 4)}`,
        )
        break
      }
      case 8: {
        const fence = random.pick((fences.get(key) as number[]).slice(-3))
        const request = { key, fence, immediate: random.integer(2) === 0 }
        const answer = await node.revoke(request, request.immediate)
        expect(
          key,
          (row) => revokeLease(row, request, now),
          answer,
          `revoke ${request.immediate ? 'at once' : ''}`,
        )
        break
      }
      default: {
        const records = await node.peekAll(keys)
        const modelled = keys.map((name) => describeLease(name, rows.get(name) ?? null, now))
        assert.deepEqual(records.map(withoutTimes), modelled.map(withoutTimes), history.slice(-12).join('\n'))
      }
    }
  }
}

async function untilFree(node: Actor, key: string): Promise<void> {
  await until(
    'the lease has lapsed',
    () => node.peek(key),
    (record) => record === null,
  )
}

/** Fences come from the store's clock; whether they are right is looked at apart. */
function learnFence(modelled: object, actual: object): object {
  if (!('outcome' in modelled) || modelled.outcome !== 'granted') return modelled
  return 'fence' in actual ? { ...modelled, fence: actual.fence } : modelled
}

/** Times to the nearest of the ttls that are used. */
function roughly(answer: object): object {
  if (!('remainingMs' in answer)) return answer
  return { ...answer, remainingMs: Math.round((answer.remainingMs as number) / longMs) + 0 }
}

function withoutTimes(record: object | null): object | null {
  if (record === null) return null
  const { key, fence, holder, awaited, revoked } = record as Record<string, unknown>
  return { key, fence, holder, awaited, revoked }
}
