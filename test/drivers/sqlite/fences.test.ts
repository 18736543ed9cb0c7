import { afterEach, expect, test, vi } from 'vitest'
import type { DriverSession } from '../../../src/driver/index.ts'
import {
  acquireRequest,
  call,
  claimRequest,
  freshPath,
  grant,
  openRaw,
  openSession,
  registerRequest,
} from './sqlite-store.ts'

// Only Date is moved: it is the clock of this store.
afterEach(() => vi.restoreAllMocks())

function setClock(now: number): void {
  vi.spyOn(Date, 'now').mockReturnValue(now)
}

async function cycle(session: DriverSession, key: string, token: string): Promise<number> {
  const fence = await grant(session, acquireRequest(key, { token }))
  await session.locks.release([{ key, token }], call)
  return fence
}

test('a thousand grants of one key within one millisecond have distinct fences, read back exactly', async () => {
  const path = freshPath()
  const session = openSession(path)
  const raw = openRaw(path)
  setClock(1_796_000_000_000)
  let last = 0
  for (let round = 0; round < 1000; round++) {
    const fence = await cycle(session, 'a', `token-${round}`)
    expect(fence).toBeGreaterThan(last)
    last = fence
  }
  expect(last).toBe(1_796_000_000_000_999)
  const kept = raw.prepare('select cast(fence as text) as fence from leasehold_lease').get()
  expect(kept).toEqual({ fence: String(last) })
})

test('records deleted within the same millisecond do not repeat a fence', async () => {
  const path = freshPath()
  const session = openSession(path)
  const raw = openRaw(path)
  setClock(1_796_000_000_000)
  const fences: number[] = []
  for (const token of ['one', 'two', 'three']) {
    fences.push(await grant(session, acquireRequest('a', { token })))
    raw.exec('delete from leasehold_lease')
  }
  fences.push(await cycle(session, 'a', 'four'))
  setClock(1_796_000_000_001)
  expect(await session.locks.purge({ retentionMs: 0, limit: 10 }, call)).toBe(1)
  setClock(1_796_000_000_000)
  fences.push(await cycle(session, 'a', 'five'))
  expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))
})

test('a record whose fence is ahead of the clock is not purged', async () => {
  const session = openSession(freshPath())
  setClock(1_796_000_000_000)
  await cycle(session, 'a', 'one')
  await cycle(session, 'a', 'two')
  expect(await session.locks.purge({ retentionMs: 0, limit: 10 }, call)).toBe(0)
  setClock(1_796_000_000_001)
  expect(await session.locks.purge({ retentionMs: 0, limit: 10 }, call)).toBe(1)
})

test('fences rise while the host’s clock steps back, for leases and runs, with and without their records', async () => {
  const path = freshPath()
  const session = openSession(path)
  const raw = openRaw(path)
  const fences: number[] = []
  for (const [index, now] of [1_796_000_000_000, 1_795_000_000_000, 1_000, 1_795_000_000_001].entries()) {
    setClock(now)
    fences.push(await cycle(session, 'a', `token-${index}`))
    if (index === 1) raw.exec('delete from leasehold_lease')
  }
  expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => a - b))

  setClock(1_000)
  await session.tasks.register([registerRequest('t')], call)
  setClock(1_001)
  const [claimed] = await session.tasks.claim([claimRequest('t', 1_001, 1_000)], call)
  expect(claimed).toMatchObject({ outcome: 'granted', fence: (fences.at(-1) ?? 0) + 1 })
})

test('another connection goes on from the same floor', async () => {
  const path = freshPath()
  setClock(1_796_000_000_000)
  const first = await cycle(openSession(path), 'a', 'one')
  openRaw(path).exec('delete from leasehold_lease')
  expect(await cycle(openSession(path), 'a', 'two')).toBe(first + 1)
})
