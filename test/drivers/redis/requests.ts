// Requests as the core makes them, with ordinary values for whatever a test leaves out.
import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type {
  AcquireRequest,
  CallOptions,
  ClaimRequest,
  DriverSession,
  LeaseRecord,
  RegisterRequest,
} from 'leasehold/driver'
import { DriverFault } from '../../../src/core/errors.ts'

export const call: CallOptions = { attempt: 1, lockedRows: 'skip' }

export function newToken(): string {
  return randomBytes(16).toString('base64url')
}

export function wanted(key: string, rest: Partial<AcquireRequest> = {}): AcquireRequest {
  return {
    key,
    token: newToken(),
    ttlMs: 60_000,
    holder: '{"instance":"test","host":"here","pid":1}',
    waitingMs: 0,
    ...rest,
  }
}

/** `count` requests for different keys. */
export function wantedMany(count: number, rest: Partial<AcquireRequest> = {}): AcquireRequest[] {
  return Array.from({ length: count }, (_, index) => wanted(`key-${index}`, rest))
}

export interface Grant extends AcquireRequest {
  readonly fence: number
  readonly remainingMs: number
}

/** Acquires a key that must be free. */
export async function grant(
  { locks }: Pick<DriverSession, 'locks'>,
  key: string,
  rest: Partial<AcquireRequest> = {},
): Promise<Grant> {
  const request = wanted(key, rest)
  const [answer] = await locks.acquire([request], call)
  if (answer?.outcome !== 'granted') throw new Error(`Not granted: ${JSON.stringify(answer)}`)
  return { ...request, fence: answer.fence, remainingMs: answer.remainingMs }
}

export function registration(task: string, rest: Partial<RegisterRequest> = {}): RegisterRequest {
  return { task, fingerprint: 'every minute', definition: '{}', starting: true, attendMs: 60_000, ...rest }
}

export function claimOf(
  task: string,
  slot: number,
  after: number,
  rest: Partial<ClaimRequest> = {},
): ClaimRequest {
  return {
    task,
    slot,
    after,
    gap: '',
    fingerprint: 'every minute',
    definition: '{}',
    attendMs: 60_000,
    token: newToken(),
    ttlMs: 60_000,
    holder: '{"instance":"test","host":"here","pid":1}',
    overlap: 'skip',
    onCrash: 'skip',
    maxAttempts: 3,
    decide: 'run',
    reason: '',
    ...rest,
  }
}

/** All pages of a scan: among many keys a page can be empty. */
export async function scanAll(
  { locks }: Pick<DriverSession, 'locks'>,
  prefix = '',
  limit = 100,
): Promise<{ readonly records: readonly LeaseRecord[]; readonly pages: number }> {
  const records: LeaseRecord[] = []
  let [pages, cursor] = [0, null as string | null]
  do {
    const page = await locks.scan({ prefix, limit, cursor }, call)
    expect(page.records.length).toBeLessThanOrEqual(limit)
    records.push(...page.records)
    cursor = page.cursor
    pages += 1
  } while (cursor !== null)
  return { records, pages }
}

/** The fault that a call rejects with. */
export async function faultOf(calling: Promise<unknown>): Promise<DriverFault> {
  const error: unknown = await calling.then(
    (answer) => new Error(`No fault, but ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(DriverFault)
  return error as DriverFault
}

/** Asks again until the answer is as wanted; fails with the last one after ten seconds. */
export async function eventually<Answer>(
  ask: () => Answer | Promise<Answer>,
  isWanted: (answer: Answer) => boolean,
): Promise<Answer> {
  const giveUpAt = performance.now() + 10_000
  for (;;) {
    const answer = await ask()
    if (isWanted(answer)) return answer
    if (performance.now() > giveUpAt) throw new Error(`Still ${JSON.stringify(answer)} after 10 s`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
