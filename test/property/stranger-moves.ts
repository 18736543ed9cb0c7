import fc from 'fast-check'
import { expect } from 'vitest'
import { askOne, askPlain } from '../../src/testing/contract/persistence.ts'
import { toStoredKey } from '../../src/core/stored-key.ts'
import type { Grant, LockModel } from './lock-model.ts'
import { longMs, type LockWorld } from './lock-world.ts'
import { move, type Move } from './move.ts'

/** The last lease that was granted, or the one before, and so on. */
const lease = fc.nat(8)
const chosen = ({ grants }: LockModel, back: number): Grant => grants.at(-1 - back) as Grant
const anyLease = ({ grants }: LockModel, { lease: back }: { lease: number }): boolean => grants.length > back
const stored = (key: string): string => toStoredKey('key', key)

/** What reaches the store besides: calls that come twice or late, and those of somebody who has no business there. */
export const strangerMoves: readonly fc.Arbitrary<Move<LockModel, LockWorld>>[] = [
  move(
    'a stranger renews and releases',
    { lease },
    async (model, { stranger }, { lease: index }) => {
      const item = { key: stored(chosen(model, index).key), token: 'somebody-else', ttlMs: longMs }
      const renewed = await askOne((items, call) => stranger.locks.refresh(items, call), item)
      const released = await askOne((items, call) => stranger.locks.release(items, call), item)
      expect([renewed.outcome, released.outcome]).toEqual(['lost', 'lost'])
    },
    anyLease,
  ),
  move(
    'a renewal comes twice',
    { lease },
    async (model, { stranger }, { lease: index }) => {
      const grant = chosen(model, index)
      const item = { key: stored(grant.key), token: grant.token, ttlMs: longMs }
      const answer = await askOne((items, call) => stranger.locks.refresh(items, call), item)
      const { isRevoked } = model.entry(grant.key)
      expect(answer.outcome).toBe(model.holds(grant) && !isRevoked ? 'held' : 'lost')
      if (answer.outcome === 'held') grant.ttlMs = Math.max(grant.ttlMs, longMs)
    },
    anyLease,
  ),
  move(
    'a release comes twice',
    { lease },
    async (model, { stranger }, { lease: index }) => {
      const { key, token } = chosen(model, index)
      const item = { key: stored(key), token }
      const answer = await askOne((items, call) => stranger.locks.release(items, call), item)
      const expected = model.releaseAnswer(key, token)
      if (expected !== null) expect(answer.outcome).toBe(expected)
      model.released(key, token)
    },
    // It was sent before, or its holder would have no idea.
    (model, choices) => anyLease(model, choices) && !model.holds(chosen(model, choices.lease)),
  ),
  move(
    'an acquire comes twice',
    { lease },
    async (model, { stranger }, { lease: index }) => {
      const grant = chosen(model, index)
      const item = { key: stored(grant.key), token: grant.token, ttlMs: longMs, holder: '{}', waitingMs: 0 }
      const answer = await askOne((items, call) => stranger.locks.acquire(items, call), item)
      if (!model.holds(grant)) return expect(answer.outcome).toBe('spent')
      if (model.entry(grant.key).isRevoked) return expect(answer.outcome).toBe('held')
      expect(answer).toMatchObject({ outcome: 'granted', fence: grant.fence })
      grant.ttlMs = Math.max(grant.ttlMs, longMs)
    },
    (model, choices) => {
      if (!anyLease(model, choices)) return false
      const grant = chosen(model, choices.lease)
      // Of older ones the store knows nothing.
      const { spent, isPurged } = model.entry(grant.key)
      return model.holds(grant) || (spent === grant.token && !isPurged)
    },
  ),
  move('purge', {}, async (model, { stranger }) => {
    await askPlain((call) => stranger.locks.purge({ retentionMs: 0, limit: 100 }, call))
    model.purged()
  }),
]
