/** What a handler is given: one run of one slot. */
export interface TaskRun {
  /** The task's name. */
  readonly task: string
  /** The nominal instant of the slot, not when it was started. */
  readonly slot: Date
  /** An operator asked for it (`trigger`, `backfill`): `slot` is when, or the slot to run again. */
  readonly isManual: boolean
  /** 1, or more if earlier attempts at this slot were lost (`onCrash: 'retry'`). */
  readonly attempt: number
  /** The fencing token: greater than that of every earlier run of this task. Send it along with writes. */
  readonly fence: number
  /**
   * Aborts when the run's lease is lost (a `LeaseLostError`) or it is asked to stop (a `RunStoppedError`): by an
   * operator, or because the scheduler stops and its drain limit is reached. Exact like a lease's signal.
   */
  readonly signal: AbortSignal
  /** Milliseconds until the deadline after which the run's lease is not trusted; 0 once it is lost or ended. */
  readonly remainingMs: number
  /** Whether the run still holds its lease. Exact at any moment: looks at both clocks. */
  isHeld(): boolean
  /** @throws LeaseLostError (`LEASE_LOST`) unless the run still holds its lease */
  assertHeld(): void
}

/** The work of a task. What it returns is ignored; if it throws or rejects, the run has failed. */
export type TaskHandler = (run: TaskRun) => unknown
