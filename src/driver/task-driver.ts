import type { BusyAnswer, CallOptions, FailedAnswer } from './driver.ts'

/**
 * Scheduled tasks and their slots in one namespace.
 *
 * One durable record per task, apart from plain leases (no plain lock can name it) and never purged:
 *
 * - `mark`: the last decided slot. It only grows, and only by a compare-and-set that names the mark it follows.
 * - the *running slot*: slot, attempt, token, fence, holder, expiry, and a stop request, while `running`. Apart from
 *   the mark, since slots go on being decided while one runs.
 * - `orders`: the manual runs that were asked for and not begun yet, as a text that only the scheduler reads; drivers
 *   compare and replace it.
 * - `fingerprint` of the schedule, `generation` (how often it changed), the fingerprints it had before (the last 8),
 *   `attended until` (some node with the present schedule was there), pause, the last 16 control request ids.
 *
 * And one row per (task, slot, attempt) in the run log; attempt 0 is a slot that did not run. Every row that moved the
 * mark stores the mark it followed (`after`), so each slot between the two has a reason even if the claimer died.
 *
 * As with locks, every call is batch in, batch out, one atomic step in one round trip, answered in order, with
 * `failed` for single bad items; a task is at most once in a batch. All of it commits durably. Slots, marks and times
 * are milliseconds since the epoch; times are the store's.
 */
export interface TaskDriver {
  /**
   * Makes a task known, at `start()` and again at least once a minute. Tells the store's time, the mark, pause.
   *
   * Where a mark becomes `now` below, it becomes `since` if that is given and earlier.
   *
   * - no record: created with `mark = now`, generation 1, log row `registered` → `created`
   * - the record has this fingerprint → `current`
   * - another fingerprint: → `raised` if `starting` and the record never had this one, or if nobody with the record's
   *   fingerprint attends any more: the old one is remembered, generation + 1, `mark = max(mark, now)`, log row
   *   `missed` with reason `edited` from the old mark to the new one, control version + 1 and pushed. Otherwise → `superseded`.
   *
   * `created`, `current` and `raised` set `attended until = max(itself, now + attendMs)`; a `current` one may leave it
   * alone while more than half of `attendMs` is left, so that a large fleet writes one record a minute. A claim is no
   * attendance.
   */
  register(requests: readonly RegisterRequest[], call: CallOptions): Promise<readonly RegisterAnswer[]>

  /**
   * Claims one slot, naming the mark it follows. The first rule that applies decides:
   *
   * 1. no record → it is registered as by {@link register}, `unregistered`; a claim never grants on a missing record
   * 2. the record has another fingerprint → `superseded`
   * 3. a run is under way with this very token → asked again: expiry re-armed (never back), same fence, the same
   *    `granted` or `takeover` (attempt > 1)
   * 4. a run has lapsed (a row that becomes `lost` ended then, not now):
   *    - under this very token → it is left as it is, and the next rules go on. The claim that it was granted to, arriving
   *      twice or asked again too late, uses up no attempt and gets no lease again.
   *    - a retry is due: `onCrash: 'retry'`, attempt < maxAttempts, and the run was not asked to stop. While paused it is
   *      left as it is, and the next rules go on. Otherwise its row becomes `lost` → `takeover`: same slot, attempt + 1,
   *      new token, greater fence.
   *    - no retry is due → its row becomes `lost`, the record is no longer running, and the next rules go on. The row of a
   *      run that was asked to stop says so: reason `cancelled`, and the request as its error.
   * 5. slot > store now → `early`
   * 6. slot ≤ mark → `decided`
   * 7. after ≠ mark → `behind`
   * 8. paused → mark = slot, log row `skipped: paused` → `skipped`
   * 9. `decide` is `'miss'` → mark = slot, log row `missed` with `reason` → `skipped`
   * 10. a run is under way → `overlap: 'skip'`: mark = slot, log row `skipped: overlap` → `skipped`;
   *     `overlap: 'queue'`: nothing changes → `held`. A lapsed run that was left as it is → `held` under either: the slot
   *     is still to be had, under another token
   * 11. → `granted`: mark = slot, running slot = slot, attempt 1, new token, `fence = max(previous + 1, now in µs)`,
   *     log row `running`
   *
   * A claim with `orders` is that of a manual run: it never touches the mark, and runs a paused task, too. In the place of
   * rules 5 to 11:
   *
   * - `orders.before` is not the record's → `behind`
   * - slot > store now → `early`
   * - `decide` is `'miss'` → orders = `orders.after`, no log row → `skipped`
   * - a run is under way, or lapsed and left as it is → `held`
   * - → `granted`: orders = `orders.after`, running slot = slot, attempt = 1 + the greatest that the log has of this slot,
   *   token and fence as above, log row `running` with `reason` and `gap`, whose `after` is the slot
   */
  claim(requests: readonly ClaimRequest[], call: CallOptions): Promise<readonly ClaimAnswer[]>

  /** Renews runs, under the rules of `LockDriver.refresh`; the answer passes on a stop request. */
  refresh(requests: readonly RunRefreshRequest[], call: CallOptions): Promise<readonly RunRefreshAnswer[]>

  /**
   * Ends a run with its outcome. Compares the fence only, not the expiry: a run that ended 1 ms past its lapse and was
   * not taken over is done. Its row gets outcome, end and error; the task is no longer running. Idempotent: asked
   * again for a run that it completed it answers `completed`. If the run was fenced out (lost, or taken over), its
   * row keeps its state, records `late`, and the answer is `late`. No such run at all → `late` too.
   */
  complete(requests: readonly CompleteRequest[], call: CallOptions): Promise<readonly CompleteAnswer[]>

  /**
   * One operator request; `requestId` makes it apply once. An applied one raises the namespace's control version in
   * the same step and pushes it. `pause` and `resume` set the record; `cancel` sets the stop request of the run under
   * way (with `fence`: only of that one) and answers `idle` if there is none; `order` replaces `orders.before` by
   * `orders.after`, and answers `changed` if the record's are others.
   */
  control(request: ControlRequest, call: CallOptions): Promise<ControlAnswer>

  /** The namespace's control version (0 at first) and the store's time. One cheap read, made once per process. */
  poll(call: CallOptions): Promise<PollAnswer>

  /** The records of these tasks in order (`null` for an unknown one), or of all tasks, by name, when `tasks` is null. */
  inspect(tasks: readonly string[] | null, call: CallOptions): Promise<readonly (TaskRecord | null)[]>

  /** Rows of the run log of one task, the latest slot first and within a slot the latest attempt first. */
  log(query: LogQuery, call: CallOptions): Promise<readonly RunRecord[]>

  /**
   * Deletes at most `limit` rows of this namespace's log whose end was recorded more than `retentionMs` ago: of a lost run
   * that is when it was found. Answers how many.
   */
  purge(request: { readonly retentionMs: number; readonly limit: number }, call: CallOptions): Promise<number>
}

export interface RegisterRequest {
  /** The task's name in stored form (see `LockDriver`). */
  readonly task: string
  /** Identifies the schedule: equal exactly if it fires at the same instants. At most 64 bytes. */
  readonly fingerprint: string
  /** For operators and other nodes: a JSON text, at most 4,000 bytes, with schedule, time zone and policies. */
  readonly definition: string
  /** True from `start()`, false when a running node looks again. */
  readonly starting: boolean
  readonly attendMs: number
  /**
   * For a task that something else fires, and that becomes known only with its first fire: the mark is at most this, so
   * that the slot which is being fired is still to be had. Null, the default: the mark is now.
   */
  readonly since?: number | null
}

/** What every answer about a task carries. */
export interface TaskState {
  /** The store's time, milliseconds since the epoch. */
  readonly now: number
  readonly mark: number
  readonly generation: number
  readonly paused: boolean
  /** The manual runs that were asked for; `''` for none. */
  readonly orders: string
  /** The run under way or lapsed and not yet dealt with, after this call. */
  readonly running: RunningSlot | null
}

export interface RunningSlot {
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  /** Until the run's lease lapses; 0 or less once it has. */
  readonly remainingMs: number
  readonly holder: string
}

export type RegisterAnswer =
  | ({ readonly outcome: 'created' | 'current' | 'raised' | 'superseded' } & TaskState)
  | BusyAnswer
  | FailedAnswer

export interface ClaimRequest {
  readonly task: string
  readonly slot: number
  /** The mark that this claim follows. */
  readonly after: number
  /** Why the slots between `after` and `slot`, if there are any, did not run; kept in the log row. */
  readonly gap: string
  readonly fingerprint: string
  readonly definition: string
  readonly attendMs: number
  readonly token: string
  readonly ttlMs: number
  readonly holder: string
  readonly overlap: 'skip' | 'queue'
  readonly onCrash: 'skip' | 'retry'
  readonly maxAttempts: number
  /** `'miss'` decides the slot without running it: it is past the task's start deadline. */
  readonly decide: 'run' | 'miss'
  /** With `decide: 'miss'`, why. */
  readonly reason: string
  /** For a manual run; null, the default, for a slot of the schedule. */
  readonly orders?: OrdersChange | null
}

/** The record's orders as they were seen, and what they become. At most 4,000 bytes each. */
export interface OrdersChange {
  readonly before: string
  readonly after: string
}

export type ClaimAnswer =
  | ({
      readonly outcome: 'granted' | 'takeover'
      /** The slot to run: the claimed one, or for a takeover the lapsed one. */
      readonly slot: number
      readonly attempt: number
      readonly fence: number
      readonly remainingMs: number
    } & TaskState)
  /** This claim decided the slot without a run: `paused`, `overlap`, or the request's own `reason`. */
  | ({ readonly outcome: 'skipped'; readonly reason: string } & TaskState)
  | ({
      readonly outcome: 'held' | 'decided' | 'behind' | 'early' | 'superseded' | 'unregistered'
    } & TaskState)
  | BusyAnswer
  | FailedAnswer

export interface RunRefreshRequest {
  readonly task: string
  readonly token: string
  readonly ttlMs: number
}

export type RunRefreshAnswer =
  | {
      readonly outcome: 'held'
      readonly remainingMs: number
      /** Why the run is asked to stop. */ readonly stop: string | null
    }
  | { readonly outcome: 'lost' }
  | BusyAnswer
  | FailedAnswer

export interface CompleteRequest {
  readonly task: string
  readonly slot: number
  readonly attempt: number
  readonly fence: number
  readonly outcome: 'succeeded' | 'failed' | 'abandoned' | 'skipped'
  /** For `skipped` and `abandoned`: why (`lock`, `timeout`, …). */
  readonly reason: string | null
  /** The error's text, at most 4,000 bytes. */
  readonly error: string | null
}

export type CompleteAnswer =
  | { readonly outcome: 'completed'; readonly now: number }
  | { readonly outcome: 'late'; readonly now: number }
  | BusyAnswer
  | FailedAnswer

export interface ControlRequest {
  readonly task: string
  readonly kind: 'pause' | 'resume' | 'cancel' | 'order'
  readonly requestId: string
  /** Who asks and why, for the record; at most 1,000 bytes. */
  readonly by: string
  /** For `cancel`: the run that the operator saw; null for whatever runs. */
  readonly fence: number | null
  /** For `order`; null, the default, for all others. */
  readonly orders?: OrdersChange | null
}

export type ControlAnswer =
  | { readonly outcome: 'applied'; readonly version: number }
  /** This request id was applied before. */
  | { readonly outcome: 'repeated'; readonly version: number }
  | { readonly outcome: 'idle' | 'changed' | 'unregistered' }
  | BusyAnswer
  | FailedAnswer

export interface PollAnswer {
  readonly version: number
  readonly now: number
}

export interface TaskRecord extends TaskState {
  readonly task: string
  readonly fingerprint: string
  readonly definition: string
  readonly registeredAt: number
  readonly attendedUntil: number
  /** `by` of the pause, or null. */
  readonly pausedBy: string | null
  /** The stop request of the run under way, or null. */
  readonly stop: string | null
}

export interface LogQuery {
  readonly task: string
  /** Only slots at or after this; null for no bound. */
  readonly from: number | null
  /** Only slots before this; null for no bound. */
  readonly to: number | null
  readonly limit: number
}

export type RunState =
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'abandoned'
  | 'lost'
  | 'skipped'
  | 'missed'
  | 'registered'

export interface RunRecord {
  readonly task: string
  readonly slot: number
  /** 1 for the first run of a slot, more for retries after a crash, 0 for a slot that did not run. */
  readonly attempt: number
  readonly state: RunState
  /**
   * Why it did not run: `overlap`, `lock`, `paused`, `edited`, `late`, …; for an abandoned run why it was asked to stop;
   * `cancelled` for one that was lost after it was asked to; null for any other run.
   */
  readonly reason: string | null
  /** The mark before this row moved it; equal to `slot` on a takeover, which moves nothing. */
  readonly after: number
  /** Why the slots between `after` and `slot` did not run. */
  readonly gap: string
  readonly fence: number | null
  readonly holder: string | null
  readonly startedAt: number
  /** Of a lost run the moment at which its lease lapsed, however much later that was found; null while it runs. */
  readonly endedAt: number | null
  /** What a run reported when it ended; for `cancelled`, who asked it to stop and why. */
  readonly error: string | null
  /** The outcome that a fenced-out run reported after it was lost. */
  readonly late: string | null
}
