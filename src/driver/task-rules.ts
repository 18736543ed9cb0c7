import { momentAfter, mintFence } from './lease-rules.ts'
import type { StoreMoment } from './lease-rules.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CompleteAnswer,
  CompleteRequest,
  ControlAnswer,
  ControlRequest,
  OrdersChange,
  RegisterAnswer,
  RegisterRequest,
  RunRecord,
  RunRefreshAnswer,
  RunRefreshRequest,
  RunState,
  TaskRecord,
  TaskState,
} from './task-driver.ts'

/*
 * The rules of TaskDriver in plain TypeScript: record + request + moment -> answer + next record + changes of the run
 * log. No I/O and no clock; see lease-rules.ts.
 */

/** The durable record of a task. Slots, marks and times are milliseconds since the epoch. */
export interface TaskRow {
  readonly task: string
  /** The last decided slot. */
  readonly mark: number
  readonly fingerprint: string
  /** The last 8 fingerprints that the schedule had before. */
  readonly former: readonly string[]
  readonly generation: number
  readonly definition: string
  readonly registeredAt: number
  /** A node with the present fingerprint was there, and is expected back before this. */
  readonly attendedUntil: number
  /** Who paused the task; null while it is not paused. */
  readonly pausedBy: string | null
  /** The run under way, or lapsed and not yet dealt with. */
  readonly run: RunRow | null
  readonly orders: string
  /** The last 16 control requests that were applied. */
  readonly requests: readonly string[]
}

export interface RunRow {
  readonly slot: number
  readonly attempt: number
  readonly token: string
  readonly fence: number
  readonly holder: string
  readonly expiresAt: number
  /** Why the run is asked to stop, or null. */
  readonly stop: string | null
}

/** What a rule decides about one task. */
export interface TaskStep<Answer> {
  readonly answer: Answer
  /** What the record becomes; null if it stays as it is. */
  readonly next: TaskRow | null
  readonly log: readonly LogChange[]
  /** The namespace's control version goes up by one. */
  readonly raisesVersion: boolean
}

/** A change of the run log. */
export type LogChange =
  | { readonly kind: 'add'; readonly row: RunRecord }
  | {
      readonly kind: 'end'
      readonly slot: number
      readonly attempt: number
      readonly state: RunState
      /** null: as it was */
      readonly reason: string | null
      readonly error: string | null
      readonly endedAt: number
      /** Of a lost run: what counts as its end, while `endedAt` is when that was found. Rows are purged by the latter. */
      readonly lapsedAt: number | null
    }
  | { readonly kind: 'late'; readonly slot: number; readonly attempt: number; readonly outcome: string }

export function registerTask(
  row: TaskRow | null,
  request: RegisterRequest,
  moment: StoreMoment,
): TaskStep<RegisterAnswer> {
  const { now } = moment
  if (row === null) {
    const { next, log } = createTask(request, now, sinceOf(request, now))
    return step({ outcome: 'created', ...stateOf(next, now) }, next, log)
  }
  if (row.fingerprint === request.fingerprint) return attend(row, request, now)
  const isNewSchedule = request.starting && !row.former.includes(request.fingerprint)
  if (isNewSchedule || row.attendedUntil <= now) return raise(row, request, now)
  return step({ outcome: 'superseded', ...stateOf(row, now) })
}

/** @param lastAttempt the greatest attempt that the run log has of the claimed slot; 0 for none */
export function claimSlot(
  row: TaskRow | null,
  request: ClaimRequest,
  moment: StoreMoment,
  lastAttempt: (slot: number) => number,
): TaskStep<ClaimAnswer> {
  const { now } = moment
  if (row === null) {
    const { next, log } = createTask(request, now, now)
    return step({ outcome: 'unregistered', ...stateOf(next, now) }, next, log)
  }
  if (row.fingerprint !== request.fingerprint) return step({ outcome: 'superseded', ...stateOf(row, now) })
  const { run } = row
  const decide = (as: TaskRow): TaskStep<ClaimAnswer> =>
    request.orders
      ? decideOrder(as, request, request.orders, moment, lastAttempt)
      : decideSlot(as, request, moment)
  if (run === null) return decide(row)
  if (run.expiresAt > now) {
    return run.token === request.token ? rearmRun(row, run, request, now) : decide(row)
  }
  // Who holds this token has lost its lease, or never knew that it had one: it gets none again.
  if (run.token === request.token) return decide(row)
  const isRetryDue = request.onCrash === 'retry' && run.attempt < request.maxAttempts && run.stop === null
  if (isRetryDue) {
    // The retry of a paused task stays due: it is taken up after the resume.
    return row.pausedBy === null ? takeOver(row, run, request, moment) : decide(row)
  }
  const cleared: TaskRow = { ...row, run: null }
  const decided = decide(cleared)
  return { ...decided, next: decided.next ?? cleared, log: [lostRun(run, now), ...decided.log] }
}

export function refreshRun(
  row: TaskRow | null,
  request: RunRefreshRequest,
  now: number,
): TaskStep<RunRefreshAnswer> {
  const run = row?.run ?? null
  if (row === null || run === null || run.token !== request.token || run.expiresAt <= now) {
    return step({ outcome: 'lost' })
  }
  const expiresAt = Math.max(run.expiresAt, momentAfter(now, request.ttlMs))
  const answer: RunRefreshAnswer = { outcome: 'held', remainingMs: expiresAt - now, stop: run.stop }
  return step(answer, { ...row, run: { ...run, expiresAt } })
}

/** @param logged the row of this slot and attempt in the run log, or null */
export function completeRun(
  row: TaskRow | null,
  logged: RunRecord | null,
  request: CompleteRequest,
  now: number,
): TaskStep<CompleteAnswer> {
  const { slot, attempt, fence, outcome, reason, error } = request
  const run = row?.run ?? null
  if (row !== null && run !== null && run.fence === fence && run.slot === slot && run.attempt === attempt) {
    const end: LogChange = {
      kind: 'end',
      slot,
      attempt,
      state: outcome,
      reason,
      error,
      endedAt: now,
      lapsedAt: null,
    }
    return step({ outcome: 'completed', now }, { ...row, run: null }, [end])
  }
  if (logged === null || logged.fence !== fence) return step({ outcome: 'late', now })
  const isCompleted = logged.state !== 'lost' && logged.state !== 'running'
  if (isCompleted) return step({ outcome: 'completed', now })
  return step({ outcome: 'late', now }, null, [{ kind: 'late', slot, attempt, outcome }])
}

/** @param version the namespace's control version before this request */
export function controlTask(
  row: TaskRow | null,
  request: ControlRequest,
  version: number,
  now: number,
): TaskStep<ControlAnswer> {
  if (row === null) return step({ outcome: 'unregistered' })
  if (row.requests.includes(request.requestId)) return step({ outcome: 'repeated', version })
  if (request.kind === 'order' && request.orders?.before !== row.orders) return step({ outcome: 'changed' })
  const controlled = applyControl(row, request, now)
  if (controlled === null) return step({ outcome: 'idle' })
  const requests = [...row.requests, request.requestId].slice(-16)
  return {
    answer: { outcome: 'applied', version: version + 1 },
    next: { ...controlled, requests },
    log: [],
    raisesVersion: true,
  }
}

export function describeTask(row: TaskRow, now: number): TaskRecord {
  const { task, fingerprint, definition, registeredAt, attendedUntil, pausedBy, run } = row
  const stop = run?.stop ?? null
  return { ...stateOf(row, now), task, fingerprint, definition, registeredAt, attendedUntil, pausedBy, stop }
}

/** The mark that a new record or schedule begins with. */
function sinceOf({ since = null }: RegisterRequest, now: number): number {
  return since === null ? now : Math.min(since, now)
}

function createTask(
  request: RegisterRequest | ClaimRequest,
  now: number,
  mark: number,
): { readonly next: TaskRow; readonly log: readonly LogChange[] } {
  const { task, fingerprint, definition, attendMs } = request
  const next: TaskRow = {
    task,
    mark,
    fingerprint,
    former: [],
    generation: 1,
    definition,
    registeredAt: now,
    attendedUntil: momentAfter(now, attendMs),
    pausedBy: null,
    run: null,
    orders: '',
    requests: [],
  }
  return { next, log: [undone({ task, slot: mark, state: 'registered', reason: null, after: mark }, now)] }
}

/** A node with the present schedule is there. Writes nothing while the note of an earlier one is fresh enough. */
function attend(row: TaskRow, request: RegisterRequest, now: number): TaskStep<RegisterAnswer> {
  const isFresh = row.attendedUntil - now > request.attendMs / 2
  const isRedefined = request.starting && row.definition !== request.definition
  const answer: RegisterAnswer = { outcome: 'current', ...stateOf(row, now) }
  if (isFresh && !isRedefined) return step(answer)
  const attendedUntil = Math.max(row.attendedUntil, momentAfter(now, request.attendMs))
  const definition = isRedefined ? request.definition : row.definition
  return step(answer, { ...row, attendedUntil, definition })
}

/** The schedule changes: what was due under the old one is closed as missed, nothing of the past fires. */
function raise(row: TaskRow, request: RegisterRequest, now: number): TaskStep<RegisterAnswer> {
  const { task, fingerprint, definition, attendMs } = request
  const mark = Math.max(row.mark, sinceOf(request, now))
  const next: TaskRow = {
    ...row,
    mark,
    fingerprint,
    former: [...row.former.filter((former) => former !== fingerprint), row.fingerprint].slice(-8),
    generation: row.generation + 1,
    definition,
    attendedUntil: Math.max(row.attendedUntil, momentAfter(now, attendMs)),
  }
  // A mark that stays has closed nothing, and the row of that slot says already what became of it.
  const missed = {
    task,
    slot: mark,
    state: 'missed',
    reason: 'edited',
    after: row.mark,
    gap: 'edited',
  } as const
  const log = mark > row.mark ? [undone(missed, now)] : []
  return { answer: { outcome: 'raised', ...stateOf(next, now) }, next, log, raisesVersion: true }
}

/** Rules 5 to 11 of a claim. A lapsed run that is still there was left as it is. */
function decideSlot(row: TaskRow, request: ClaimRequest, moment: StoreMoment): TaskStep<ClaimAnswer> {
  const { now } = moment
  if (request.slot > now) return step({ outcome: 'early', ...stateOf(row, now) })
  if (request.slot <= row.mark) return step({ outcome: 'decided', ...stateOf(row, now) })
  if (request.after !== row.mark) return step({ outcome: 'behind', ...stateOf(row, now) })
  if (row.pausedBy !== null) return leaveOut(row, request, 'skipped', 'paused', now)
  if (request.decide === 'miss') return leaveOut(row, request, 'missed', request.reason, now)
  if (row.run === null) return grant(row, request, moment)
  const isUnderWay = row.run.expiresAt > now
  if (isUnderWay && request.overlap === 'skip') return leaveOut(row, request, 'skipped', 'overlap', now)
  return step({ outcome: 'held', ...stateOf(row, now) })
}

/** The rules of a manual run in the place of 5 to 11. */
function decideOrder(
  row: TaskRow,
  request: ClaimRequest,
  orders: OrdersChange,
  moment: StoreMoment,
  lastAttempt: (slot: number) => number,
): TaskStep<ClaimAnswer> {
  const { now } = moment
  const { slot, reason, gap, decide } = request
  if (orders.before !== row.orders) return step({ outcome: 'behind', ...stateOf(row, now) })
  if (slot > now) return step({ outcome: 'early', ...stateOf(row, now) })
  if (decide === 'miss') {
    const next: TaskRow = { ...row, orders: orders.after }
    return step({ outcome: 'skipped', reason, ...stateOf(next, now) }, next)
  }
  if (row.run !== null) return step({ outcome: 'held', ...stateOf(row, now) })
  const run = startRun(request, slot, lastAttempt(slot) + 1, moment)
  const next: TaskRow = { ...row, orders: orders.after, run }
  const log = [startedRow(row.task, run, slot, gap, now, reason)]
  return step({ outcome: 'granted', ...granted(next, run, now) }, next, log)
}

function grant(row: TaskRow, request: ClaimRequest, moment: StoreMoment): TaskStep<ClaimAnswer> {
  const run = startRun(request, request.slot, 1, moment)
  const next: TaskRow = { ...row, mark: request.slot, run }
  const log = [startedRow(row.task, run, row.mark, request.gap, moment.now)]
  return step({ outcome: 'granted', ...granted(next, run, moment.now) }, next, log)
}

/** The same slot again, as the next attempt; the mark stays. */
function takeOver(
  row: TaskRow,
  lapsed: RunRow,
  request: ClaimRequest,
  moment: StoreMoment,
): TaskStep<ClaimAnswer> {
  const run = startRun(request, lapsed.slot, lapsed.attempt + 1, moment, lapsed)
  const next: TaskRow = { ...row, run }
  const log = [lostRun(lapsed, moment.now), startedRow(row.task, run, run.slot, '', moment.now)]
  return step({ outcome: 'takeover', ...granted(next, run, moment.now) }, next, log)
}

/** The same claim asks again, because its first answer was lost. */
function rearmRun(row: TaskRow, run: RunRow, request: ClaimRequest, now: number): TaskStep<ClaimAnswer> {
  const rearmed: RunRow = { ...run, expiresAt: Math.max(run.expiresAt, momentAfter(now, request.ttlMs)) }
  const next: TaskRow = { ...row, run: rearmed }
  return step({ outcome: run.attempt > 1 ? 'takeover' : 'granted', ...granted(next, rearmed, now) }, next)
}

/** Decides the slot without running it. */
function leaveOut(
  row: TaskRow,
  request: ClaimRequest,
  state: 'skipped' | 'missed',
  reason: string,
  now: number,
): TaskStep<ClaimAnswer> {
  const { slot, gap, holder } = request
  const next: TaskRow = { ...row, mark: slot }
  const log = [undone({ task: row.task, slot, state, reason, after: row.mark, gap, holder }, now)]
  return step({ outcome: 'skipped', reason, ...stateOf(next, now) }, next, log)
}

function applyControl(row: TaskRow, request: ControlRequest, now: number): TaskRow | null {
  if (request.kind === 'pause') return { ...row, pausedBy: request.by }
  if (request.kind === 'resume') return { ...row, pausedBy: null }
  if (request.kind === 'order') return { ...row, orders: request.orders?.after ?? row.orders }
  const { run } = row
  if (run === null || run.expiresAt <= now) return null
  if (request.fence !== null && request.fence !== run.fence) return null
  return { ...row, run: { ...run, stop: request.by } }
}

function startRun(
  request: ClaimRequest,
  slot: number,
  attempt: number,
  moment: StoreMoment,
  previous: RunRow | null = null,
): RunRow {
  const { token, holder, ttlMs } = request
  const fence = mintFence(previous, moment)
  return { slot, attempt, token, fence, holder, expiresAt: momentAfter(moment.now, ttlMs), stop: null }
}

function startedRow(
  task: string,
  run: RunRow,
  after: number,
  gap: string,
  now: number,
  reason: string | null = null,
): LogChange {
  const { slot, attempt, fence, holder } = run
  const open = { reason, startedAt: now, endedAt: null, error: null, late: null }
  return { kind: 'add', row: { task, slot, attempt, state: 'running', after, gap, fence, holder, ...open } }
}

/** The log row of a slot that did not run: attempt 0, begun and ended at once. */
function undone(
  what: Pick<RunRecord, 'task' | 'slot' | 'state' | 'reason' | 'after'> & Partial<RunRecord>,
  now: number,
): LogChange {
  const closed = { startedAt: now, endedAt: now, error: null, late: null }
  return { kind: 'add', row: { attempt: 0, gap: '', fence: null, holder: null, ...closed, ...what } }
}

function lostRun(run: RunRow, now: number): LogChange {
  const { slot, attempt, stop, expiresAt } = run
  const reason = stop === null ? null : 'cancelled'
  return { kind: 'end', slot, attempt, state: 'lost', reason, error: stop, endedAt: now, lapsedAt: expiresAt }
}

function granted(
  row: TaskRow,
  run: RunRow,
  now: number,
): { slot: number; attempt: number; fence: number; remainingMs: number } & TaskState {
  const { slot, attempt, fence, expiresAt } = run
  return { ...stateOf(row, now), slot, attempt, fence, remainingMs: expiresAt - now }
}

function stateOf(row: TaskRow, now: number): TaskState {
  const { mark, generation, run } = row
  return {
    now,
    mark,
    generation,
    paused: row.pausedBy !== null,
    orders: row.orders,
    running: run === null ? null : shown(run, now),
  }
}

function shown(run: RunRow, now: number): TaskState['running'] {
  const { slot, attempt, fence, holder, expiresAt } = run
  return { slot, attempt, fence, holder, remainingMs: expiresAt - now }
}

function step<Answer>(
  answer: Answer,
  next: TaskRow | null = null,
  log: readonly LogChange[] = [],
): TaskStep<Answer> {
  return { answer, next, log, raisesVersion: false }
}
