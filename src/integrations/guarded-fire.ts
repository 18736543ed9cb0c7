import {
  ClosedError,
  type FiredRun,
  type FireOptions,
  InvalidOptionError,
  type ScheduledTaskStore,
} from '../index.ts'

/** A fire of which nobody knows whether it is to run, so that it does not run here. */
export interface SkippedFire {
  readonly name: string
  /** The nominal instant that was fired; null for a fire by hand. */
  readonly slot: Date | null
}

/** What goes for every fire of a guarded job. */
export interface GuardOptions extends Pick<
  FireOptions,
  'ttl' | 'heartbeat' | 'maxLifetime' | 'startDeadline'
> {
  /**
   * Called when the store could not be asked within `startDeadline`: the fire is left out here. Default: a process
   * warning with the code `LEASEHOLD_NOT_FIRED`. What the job itself throws is the scheduler's, as without the guard.
   */
  readonly onStoreError?: ((error: unknown, fire: SkippedFire) => void) | undefined
}

/** What a guard needs of a `ScheduledTaskStore`. */
export type GuardingStore = Pick<ScheduledTaskStore, 'run' | 'guard'>

/** One job, as the scheduler that fires it sees it. */
export class GuardedJob {
  readonly #store: GuardingStore
  readonly #name: string
  readonly #options: Omit<GuardOptions, 'onStoreError'>
  readonly #onStoreError: (error: unknown, fire: SkippedFire) => void
  #known: { readonly cron: unknown; readonly timeZone: string | undefined; readonly timing: FireOptions } = {
    cron: undefined,
    timeZone: undefined,
    timing: {},
  }

  /** @throws InvalidOptionError */
  constructor(store: GuardingStore, name: string, options: GuardOptions) {
    const { onStoreError = warn, ...fireOptions } = options
    if (typeof onStoreError !== 'function') {
      throw new InvalidOptionError('onStoreError', 'onStoreError must be a function.')
    }
    this.#store = store
    this.#name = name
    this.#options = fireOptions
    this.#onStoreError = onStoreError
    store.guard(name, () => {}, fireOptions)
  }

  /**
   * Runs the work if the store says so.
   *
   * @param timing what names the slot; nothing for a fire by hand, which runs under the lock of its name alone
   * @returns what the work returned; undefined if it did not run here
   * @throws what the work throws; InvalidOptionError
   */
  async fire<Result>(
    timing: FireOptions,
    work: (run: FiredRun) => Result,
  ): Promise<Awaited<Result> | undefined> {
    let value: Awaited<Result> | undefined
    let failure: { readonly error: unknown } | undefined
    const keeping = async (run: FiredRun): Promise<void> => {
      try {
        value = await work(run)
      } catch (error) {
        failure = { error }
        throw error
      }
    }
    try {
      await this.#store.run(this.#name, keeping, { ...this.#options, ...timing })
    } catch (error) {
      if (failure !== undefined) throw failure.error
      if (error instanceof InvalidOptionError) throw error
      // The process is leaving: another one runs it.
      if (!(error instanceof ClosedError)) this.#leaveOut(error, timing)
    }
    return value
  }

  /** The cron, for the run log, if it means to us what it means to the scheduler; else the slots alone. */
  cronTiming(cron: unknown, timeZone: string | undefined): FireOptions {
    if (cron !== this.#known.cron || timeZone !== this.#known.timeZone) {
      this.#known = { cron, timeZone, timing: this.#readCron(cron, timeZone ?? hostZone()) }
    }
    return this.#known.timing
  }

  #readCron(cron: unknown, timeZone: string): FireOptions {
    if (typeof cron !== 'string') return {}
    const timing = { cron, timeZone }
    try {
      this.#store.guard(this.#name, () => {}, timing)
      return timing
    } catch {
      return {}
    }
  }

  #leaveOut(error: unknown, { slot }: FireOptions): void {
    this.#onStoreError(error, { name: this.#name, slot: slot === undefined ? null : new Date(slot) })
  }
}

/** Schedulers that are given no zone go by the host's. */
function hostZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone
}

function warn(error: unknown, { name, slot }: SkippedFire): void {
  const which = slot === null ? 'fired by hand' : `the slot ${slot.toISOString()}`
  const reason = error instanceof Error ? error.message : String(error)
  process.emitWarning(`${JSON.stringify(name)}, ${which}, was left out on this process: ${reason}`, {
    code: 'LEASEHOLD_NOT_FIRED',
  })
}
