import type { LoggerService } from '@nestjs/common'
import {
  ClosedError,
  type FiredRun,
  type FireOptions,
  InvalidOptionError,
  type ScheduledTaskStore,
  type SlotTiming,
} from '../../index.ts'
import type { GuardingStore, SkippedFire } from '../../integrations/index.ts'
import type { GuardedOptions } from '../marks.ts'
import { messageOf } from '../message-of.ts'
import { type JobInside, runJob } from './current-run.ts'

/** What all jobs of one application share. */
export interface GuardDesk {
  readonly store: ScheduledTaskStore
  readonly logger: LoggerService
  /** From here on nothing is fired any more. */
  isClosing: boolean
}

/** A job that every process of the fleet fires, and one of them runs. */
export class FleetJob {
  readonly name: string
  readonly #desk: GuardDesk
  readonly #options: Omit<GuardedOptions, 'name'>

  constructor(desk: GuardDesk, name: string, options: GuardedOptions) {
    const { name: _name, ...fireOptions } = options
    this.#desk = desk
    this.name = name
    this.#options = fireOptions
  }

  /**
   * Runs the work, unless another process does or did; says in the log if that could not be found out.
   *
   * @param timing what names the slot; nothing where there is none, and the name is merely locked
   * @throws what the work throws
   */
  async fire(timing: FireOptions, work: () => unknown): Promise<void> {
    let thrown: { readonly error: unknown } | undefined
    const watched = async (): Promise<void> => {
      try {
        await work()
      } catch (error) {
        thrown = { error }
        throw error
      }
    }
    try {
      await this.#run(watched, timing)
    } catch (error) {
      if (thrown !== undefined) throw thrown.error
      // The process is leaving: another one runs it.
      if (error instanceof ClosedError) return
      const slot = timing.slot === undefined ? null : new Date(timing.slot)
      this.tellStoreError(error, { name: this.name, slot })
    }
  }

  /** The job's own view of the store, for guards that decide about the slot themselves. */
  asStore(): GuardingStore {
    const { store } = this.#desk
    return {
      run: (_name, fn, options) => this.#run(fn, { ...options }),
      guard: store.guard.bind(store),
    }
  }

  readonly tellStoreError = (error: unknown, { slot }: SkippedFire): void => {
    const which = slot === null ? this.name : `${this.name} of ${slot.toISOString()}`
    this.#desk.logger.error(`${which} was not run here: ${messageOf(error)}`)
  }

  /** Makes the job known to the store before its first fire, if that can know when its slots are. */
  announce(timing: SlotTiming): void {
    const { store, logger } = this.#desk
    if (timing.cron === undefined && timing.every === undefined) return
    store.announce(this.name, { ...this.#options, ...timing }).catch((error: unknown) => {
      // A cron that means nothing to us goes by its slots alone.
      if (this.#desk.isClosing || error instanceof InvalidOptionError) return
      logger.warn(`${this.name} could not be announced: ${messageOf(error)}`)
    })
  }

  async #run(fn: (run: FiredRun) => unknown, timing: FireOptions): Promise<'ran' | 'skipped'> {
    if (this.#desk.isClosing) return 'skipped'
    let keptBack: JobInside['failure'] = null
    const inside = (run: FiredRun): Promise<void> => {
      const job: JobInside = { run, failure: null }
      return runJob(job, async () => {
        await fn(run)
        keptBack = job.failure
        // Only for the record: whoever kept it to himself has dealt with it.
        if (job.failure !== null) throw job.failure.error
      })
    }
    try {
      const outcome = await this.#desk.store.run(this.name, inside, { ...this.#options, ...timing })
      if (outcome === 'skipped') this.#tellSkipped(timing)
      return outcome
    } catch (error) {
      if (keptBack !== null) return 'ran'
      throw error
    }
  }

  #tellSkipped({ slot }: FireOptions): void {
    const what = slot === undefined ? 'is held by' : `of ${new Date(slot).toISOString()} is for`
    this.#desk.logger.debug?.(`${this.name} ${what} another process: not run here`)
  }
}
