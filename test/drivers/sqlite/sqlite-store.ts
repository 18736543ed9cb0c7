// A throw-away SQLite file, and the requests that tests send to it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { DriverFault } from '../../../src/core/errors.ts'
import type {
  AcquireRequest,
  CallOptions,
  ClaimRequest,
  DriverSession,
  RegisterRequest,
} from '../../../src/driver/index.ts'
import { loadSqliteLibrary } from '../../../src/drivers/sqlite/clients.ts'
import type { SqliteDatabase } from '../../../src/drivers/sqlite/index.ts'
import { sqliteDriver } from '../../../src/drivers/sqlite/index.ts'
import type { SqliteCommonOptions } from '../../../src/drivers/sqlite/index.ts'

export const call: CallOptions = { attempt: 1, lockedRows: 'skip' }

/** The path of a file that is not there yet, in a directory that goes with the test. */
export function freshPath(): string {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-sqlite-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'locks.db')
}

/** A session on a file, closed with the test. */
export function openSession(
  path: string,
  options: SqliteCommonOptions = {},
  namespace = 'test',
): DriverSession {
  const session = sqliteDriver({ ...options, path }).open(namespace)
  onTestFinished(() => session.close())
  return session
}

/** A connection of the test's own, with whichever library is there. */
export function openRaw(path: string): SqliteDatabase {
  const database = loadSqliteLibrary().open(path)
  // Whoever opens a file after a crash may meet another that recovers it.
  database.exec('pragma busy_timeout = 5000')
  onTestFinished(() => {
    try {
      database.close()
    } catch {
      // The test closed it.
    }
  })
  return database
}

export function acquireRequest(key: string, changes: Partial<AcquireRequest> = {}): AcquireRequest {
  return { key, token: `token-of-${key}`, ttlMs: 60_000, holder: '{}', waitingMs: 0, ...changes }
}

export function registerRequest(task: string, changes: Partial<RegisterRequest> = {}): RegisterRequest {
  return { task, fingerprint: 'f1', definition: '{}', starting: true, attendMs: 60_000, ...changes }
}

export function claimRequest(task: string, slot: number, after: number): ClaimRequest {
  return {
    task,
    slot,
    after,
    gap: '',
    fingerprint: 'f1',
    definition: '{}',
    attendMs: 60_000,
    token: `token-of-${task}-${slot}`,
    ttlMs: 60_000,
    holder: '{}',
    overlap: 'skip',
    onCrash: 'skip',
    maxAttempts: 1,
    decide: 'run',
    reason: '',
  }
}

/** Grants the key or fails the test; answers the fence. */
export async function grant(session: DriverSession, request: AcquireRequest): Promise<number> {
  const [answer] = await session.locks.acquire([request], call)
  if (answer?.outcome !== 'granted') throw new Error(`not granted: ${JSON.stringify(answer)}`)
  return answer.fence
}

/** What a call that must fail is rejected with. */
export async function faultOf(calling: Promise<unknown>): Promise<DriverFault> {
  const outcome = await calling.then(
    (value) => new Error(`answered ${JSON.stringify(value)}`),
    (error: unknown) => error,
  )
  if (outcome instanceof DriverFault) return outcome
  throw outcome
}
