import { expect, vi } from 'vitest'
import type { sqliteDriver } from 'leasehold/sqlite'
import type { Check } from '../../../support/planting.ts'
import { full, normal, watchCommits } from '../commits.ts'
import {
  acquireRequest,
  call,
  claimRequest,
  faultOf,
  freshPath,
  grant,
  openRaw,
  registerRequest,
} from '../sqlite-store.ts'

/** The driver under trial, as it is or with a bug in it. */
export interface Trial {
  readonly sqliteDriver: typeof sqliteDriver
}

export const noFenceIsRepeated: Check<Trial> = {
  sentence: 'records that are deleted within one millisecond repeat no fence',
  async run({ sqliteDriver }) {
    const path = freshPath()
    const session = sqliteDriver({ path }).open('ns')
    const clock = vi.spyOn(Date, 'now').mockReturnValue(1_796_000_000_000)
    try {
      const fences: number[] = []
      for (const token of ['one', 'two', 'three']) {
        fences.push(await grant(session, acquireRequest('key', { token })))
        openRaw(path).exec('delete from leasehold_lease')
      }
      expect(new Set(fences).size).toBe(3)
    } finally {
      clock.mockRestore()
      await session.close()
    }
  },
}

export const nothingBlocksTheLoop: Check<Trial> = {
  sentence: 'a file that somebody else has locked does not block the event loop',
  async run({ sqliteDriver }) {
    const path = freshPath()
    const session = sqliteDriver({ path }).open('ns')
    await grant(session, acquireRequest('key'))
    const other = openRaw(path)
    other.exec('begin immediate')
    const before = performance.now()
    const answering = session.locks.refresh([acquireRequest('key')], call)
    const blockedMs = performance.now() - before
    expect((await faultOf(answering)).kind).toBe('retry')
    other.exec('rollback')
    await session.close()
    expect(blockedMs).toBeLessThan(150)
  },
}

export const slotsSurviveAPowerCut: Check<Trial> = {
  sentence: 'slots and outcomes are on the disk when they are answered, leases need not be',
  async run({ sqliteDriver }) {
    const database = openRaw(freshPath())
    database.exec('pragma journal_mode = wal')
    const { watched, levels } = watchCommits(database)
    const { locks, tasks } = sqliteDriver({ database: watched }).open('ns')
    await tasks.poll(call)
    await tasks.register([registerRequest('task')], call)
    levels()
    await tasks.claim([claimRequest('task', 1, 0)], call)
    const run = { task: 'task', slot: 1, attempt: 1, fence: 1 }
    await tasks.complete([{ ...run, outcome: 'succeeded', reason: null, error: null }], call)
    await locks.acquire([acquireRequest('key')], call)
    expect(levels()).toEqual([full, full, normal])
  },
}
