import assert from 'node:assert/strict'
import type {
  AcquireAnswer,
  AcquireRequest,
  BusyAnswer,
  DriverSession,
  LeaseRecord,
  LockDriver,
  RefreshAnswer,
  RefreshRequest,
  ReleaseAnswer,
  ReleaseRequest,
  RevokeAnswer,
  ScanPage,
  TaskDriver,
} from '../../driver/index.ts'
import { askOne, askPlain, askSingle, askUntilSettled, type Settled } from './persistence.ts'
import { TaskActor } from './task-actor.ts'
import { newToken, plainHolder } from './tokens.ts'

/** A granted lease, as the node that holds it knows it. */
export interface Grant {
  readonly key: string
  readonly token: string
  readonly fence: number
  readonly remainingMs: number
}

/** What an acquire asks for besides its key; whatever is left out is ordinary. */
export type Wish = Partial<Omit<AcquireRequest, 'key'>>

/** One node: a session, with the verbs of plain leases in the singular and in the plural. */
export class Actor {
  readonly session: DriverSession
  readonly locks: LockDriver
  readonly tasks: TaskDriver
  /** The same node's verbs for scheduled tasks. */
  readonly scheduled: TaskActor

  constructor(session: DriverSession) {
    this.session = session
    this.locks = session.locks
    this.tasks = session.tasks
    this.scheduled = new TaskActor(session.tasks)
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<Exclude<AcquireAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.locks.acquire(items, call), requests)
  }

  acquire(key: string, wish: Wish = {}): Promise<Settled<AcquireAnswer>> {
    return askOne((items, call) => this.locks.acquire(items, call), wishFor(key, wish))
  }

  /** Acquires a key that must be free. */
  async grant(key: string, wish: Wish = {}): Promise<Grant> {
    const request = wishFor(key, wish)
    const answer = await askOne((items, call) => this.locks.acquire(items, call), request)
    assert.equal(
      answer.outcome,
      'granted',
      `${JSON.stringify(key)} should be granted: ${JSON.stringify(answer)}`,
    )
    return { ...answer, key, token: request.token }
  }

  refreshAll(requests: readonly RefreshRequest[]): Promise<Exclude<RefreshAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.locks.refresh(items, call), requests)
  }

  refresh(lease: Pick<Grant, 'key' | 'token'>, ttlMs = 60_000): Promise<Settled<RefreshAnswer>> {
    const request = { key: lease.key, token: lease.token, ttlMs }
    return askOne((items, call) => this.locks.refresh(items, call), request)
  }

  releaseAll(requests: readonly ReleaseRequest[]): Promise<Exclude<ReleaseAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.locks.release(items, call), requests)
  }

  /** Answers the outcome alone: there is nothing else in it. */
  async release(lease: Pick<Grant, 'key' | 'token'>): Promise<'released' | 'lost'> {
    const request = { key: lease.key, token: lease.token }
    return (await askOne((items, call) => this.locks.release(items, call), request)).outcome
  }

  revoke(lease: Pick<Grant, 'key' | 'fence'>, immediate = false): Promise<Settled<RevokeAnswer>> {
    const request = { key: lease.key, fence: lease.fence, immediate }
    return askSingle((item, call) => this.locks.revoke(item, call), request)
  }

  peekAll(keys: readonly string[]): Promise<readonly (LeaseRecord | null)[]> {
    return askPlain((call) => this.locks.peek(keys, call))
  }

  async peek(key: string): Promise<LeaseRecord | null> {
    const records = await this.peekAll([key])
    assert.equal(records.length, 1, 'peek answers each key')
    return records[0] as LeaseRecord | null
  }

  /** Peeks at a lease that must be there. */
  async see(key: string): Promise<LeaseRecord> {
    const record = await this.peek(key)
    assert.ok(record !== null, `${JSON.stringify(key)} should be held`)
    return record
  }

  /** All pages of a scan. Calls back between two pages. */
  async scan(prefix: string, limit: number, betweenPages?: () => Promise<void>): Promise<LeaseRecord[]> {
    const found: LeaseRecord[] = []
    let cursor: string | null = null
    for (let pages = 0; pages < 5_000; pages++) {
      const from: string | null = cursor
      const page: ScanPage = await askPlain((call) => this.locks.scan({ prefix, limit, cursor: from }, call))
      assert.ok(page.records.length <= limit, `a page of ${limit} has ${page.records.length} records`)
      found.push(...page.records)
      if (page.cursor === null) return found
      cursor = page.cursor
      await betweenPages?.()
    }
    assert.fail('the scan does not end')
  }

  purge(retentionMs: number, limit = 1_000): Promise<number> {
    return askPlain((call) => this.locks.purge({ retentionMs, limit }, call))
  }

  /** Purges until nothing is left to purge; answers how many records went. */
  async purgeAll(retentionMs = 0): Promise<number> {
    let total = 0
    for (;;) {
      const deleted = await this.purge(retentionMs)
      if (deleted === 0) return total
      total += deleted
    }
  }
}

export function wishFor(key: string, wish: Wish = {}): AcquireRequest {
  return { key, token: newToken(), ttlMs: 60_000, holder: plainHolder, waitingMs: 0, ...wish }
}
