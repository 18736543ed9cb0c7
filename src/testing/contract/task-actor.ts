import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type {
  BusyAnswer,
  ClaimAnswer,
  ClaimRequest,
  CompleteAnswer,
  CompleteRequest,
  ControlAnswer,
  ControlRequest,
  LogQuery,
  PollAnswer,
  RegisterAnswer,
  RegisterRequest,
  RunRecord,
  RunRefreshAnswer,
  RunRefreshRequest,
  TaskDriver,
  TaskRecord,
} from '../../driver/index.ts'
import { newToken, plainHolder } from './tokens.ts'
import { askOne, askPlain, askSingle, askUntilSettled, type Settled } from './persistence.ts'
import { until } from './until.ts'

/** A run under way, as the node that has it knows it. */
export interface Run {
  readonly task: string
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  readonly token: string
  readonly remainingMs: number
  /** The task's mark after the claim. */
  readonly mark: number
}

type Registration = Partial<Omit<RegisterRequest, 'task'>>
/** A claim has to say which slot, and after which mark. */
type ClaimWish = Partial<Omit<ClaimRequest, 'task'>> & Pick<ClaimRequest, 'slot' | 'after'>
type Running = Extract<ClaimAnswer, { outcome: 'granted' | 'takeover' }>

/** One node's verbs for scheduled tasks, in the singular and in the plural. */
export class TaskActor {
  readonly #tasks: TaskDriver

  constructor(tasks: TaskDriver) {
    this.#tasks = tasks
  }

  registerAll(requests: readonly RegisterRequest[]): Promise<Exclude<RegisterAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.#tasks.register(items, call), requests)
  }

  register(task: string, wish: Registration = {}): Promise<Settled<RegisterAnswer>> {
    return askOne((items, call) => this.#tasks.register(items, call), registrationOf(task, wish))
  }

  claimAll(requests: readonly ClaimRequest[]): Promise<Exclude<ClaimAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.#tasks.claim(items, call), requests)
  }

  claim(task: string, wish: ClaimWish): Promise<Settled<ClaimAnswer>> {
    return askOne((items, call) => this.#tasks.claim(items, call), claimOf(task, wish))
  }

  /** Claims a slot that must be there for the taking: the one after the mark, unless another is named. */
  async run(task: string, wish: Partial<ClaimWish> = {}): Promise<Run> {
    const [mark, next] = await this.slots(task, 1)
    const request = claimOf(task, { after: mark, slot: next, ...wish })
    const answer = await askOne((items, call) => this.#tasks.claim(items, call), request)
    assert.equal(answer.outcome, 'granted', `a slot should be granted: ${JSON.stringify(answer)}`)
    return runOf(task, request.token, answer)
  }

  /** Takes over a lapsed run that must be there to be retried. */
  async takeOver(task: string, wish: Partial<ClaimWish> = {}): Promise<Run> {
    const [mark, next] = await this.slots(task, 1)
    const request = claimOf(task, { after: mark, slot: next, onCrash: 'retry', maxAttempts: 9, ...wish })
    const answer = await askOne((items, call) => this.#tasks.claim(items, call), request)
    assert.equal(answer.outcome, 'takeover', `a lapsed run should be taken over: ${JSON.stringify(answer)}`)
    return runOf(task, request.token, answer)
  }

  /** The mark, and the `count` milliseconds after it as slots, once they all are in the store's past. */
  async slots(task: string, count: number): Promise<[mark: number, next: number, ...later: number[]]> {
    const { mark } = await this.inspect(task)
    await this.waitFor(mark + count)
    return Array.from({ length: count + 1 }, (_, index) => mark + index) as [number, number]
  }

  /** Waits for the store's clock. */
  async waitFor(time: number): Promise<void> {
    await until(
      `the store's clock shows ${time}`,
      () => this.poll(),
      ({ now }) => now >= time,
    )
  }

  /** Waits until the run under way has lapsed on the store's clock. */
  async waitForLapse(task: string): Promise<void> {
    await until(
      'the run has lapsed',
      () => this.inspect(task),
      ({ running }) => running === null || running.remainingMs <= 0,
    )
  }

  refreshAll(requests: readonly RunRefreshRequest[]): Promise<Exclude<RunRefreshAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.#tasks.refresh(items, call), requests)
  }

  refresh(run: Pick<Run, 'task' | 'token'>, ttlMs = 60_000): Promise<Settled<RunRefreshAnswer>> {
    const request = { task: run.task, token: run.token, ttlMs }
    return askOne((items, call) => this.#tasks.refresh(items, call), request)
  }

  completeAll(requests: readonly CompleteRequest[]): Promise<Exclude<CompleteAnswer, BusyAnswer>[]> {
    return askUntilSettled((items, call) => this.#tasks.complete(items, call), requests)
  }

  /** Answers the outcome alone: there is little else in it. */
  async complete(run: Completion, wish: Partial<CompleteRequest> = {}): Promise<'completed' | 'late'> {
    const request = completionOf(run, wish)
    return (await askOne((items, call) => this.#tasks.complete(items, call), request)).outcome
  }

  control(
    task: string,
    kind: ControlRequest['kind'],
    wish: Partial<ControlRequest> = {},
  ): Promise<Settled<ControlAnswer>> {
    const request = { task, kind, requestId: randomUUID(), by: 'contract', fence: null, ...wish }
    return askSingle((item, call) => this.#tasks.control(item, call), request)
  }

  poll(): Promise<PollAnswer> {
    return askPlain((call) => this.#tasks.poll(call))
  }

  inspectAll(tasks: readonly string[] | null): Promise<readonly (TaskRecord | null)[]> {
    return askPlain((call) => this.#tasks.inspect(tasks, call))
  }

  /** Inspects a task that must be there. */
  async inspect(task: string): Promise<TaskRecord> {
    const [record] = await this.inspectAll([task])
    assert.ok(record !== null && record !== undefined, `the task ${JSON.stringify(task)} should be known`)
    return record
  }

  log(task: string, query: Partial<LogQuery> = {}): Promise<readonly RunRecord[]> {
    return askPlain((call) => this.#tasks.log({ task, from: null, to: null, limit: 1_000, ...query }, call))
  }

  /** The one row of a slot's attempt, which must be there. */
  async row(task: string, slot: number, attempt: number): Promise<RunRecord> {
    const rows = await this.log(task, { from: slot, to: slot + 1 })
    const row = rows.find((one) => one.attempt === attempt)
    assert.ok(row !== undefined, `no row of attempt ${attempt} in ${JSON.stringify(rows)}`)
    return row
  }

  purge(retentionMs: number, limit = 1_000): Promise<number> {
    return askPlain((call) => this.#tasks.purge({ retentionMs, limit }, call))
  }
}

type Completion = Pick<Run, 'task' | 'slot' | 'attempt' | 'fence'>

/** The schedule that tasks of this suite have unless it matters. */
export const plainFingerprint = 'every-ms'

export function registrationOf(task: string, wish: Registration = {}): RegisterRequest {
  return {
    task,
    fingerprint: plainFingerprint,
    definition: '{"every":"1ms"}',
    starting: true,
    attendMs: 60_000,
    ...wish,
  }
}

export function claimOf(task: string, wish: ClaimWish): ClaimRequest {
  return {
    task,
    gap: '',
    fingerprint: plainFingerprint,
    definition: '{"every":"1ms"}',
    attendMs: 60_000,
    token: newToken(),
    ttlMs: 60_000,
    holder: plainHolder,
    overlap: 'skip',
    onCrash: 'skip',
    maxAttempts: 1,
    decide: 'run',
    reason: '',
    ...wish,
  }
}

export function completionOf(run: Completion, wish: Partial<CompleteRequest> = {}): CompleteRequest {
  const { task, slot, attempt, fence } = run
  return { task, slot, attempt, fence, outcome: 'succeeded', reason: null, error: null, ...wish }
}

function runOf(task: string, token: string, answer: Running): Run {
  const { slot, attempt, fence, remainingMs, mark } = answer
  return { task, token, slot, attempt, fence, remainingMs, mark }
}
