import type { LoggerService } from '@nestjs/common'
import {
  type FireOptions,
  InvalidOptionError,
  type ScheduledTaskStore,
  type SlotTiming,
} from '../../index.ts'
import type { GuardedOptions } from '../marks.ts'
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
  readonly #options: Pick<FireOptions, 'ttl' | 'heartbeat' | 'maxLifetime' | 'startDeadline'>
  #usable: { readonly timing: SlotTiming; readonly text: string } | null = null

  constructor(desk: GuardDesk, name: string, options: GuardedOptions) {
    const { name: _name, ...fire } = options
    this.#desk = desk
    this.name = name
    this.#options = fire
  }

  /**
   * Runs the work, unless another process does or did; says in the log if that could not be found out.
   *
   * @param slot null: there is none, and the name is merely locked
   * @throws what the work throws
   */
  async fire(slot: number | null, timing: SlotTiming, work: () => unknown): Promise<void> {
    if (this.#desk.isClosing) return
    let thrown: { readonly error: unknown } | null = null
    const watched = async (): Promise<void> => {
      try {
        await work()
      } catch (error) {
        thrown = { error }
        throw error
      }
    }
    const job = (run: JobInside['run']): Promise<void> => {
      const context: JobInside = { run, failure: null }
      return runJob(context, async () => {
        await watched()
        // Only for the record: whoever kept it to himself has dealt with it.
        if (context.failure !== null) throw context.failure.error
      })
    }
    let isOver = false
    try {
      const options =
        slot === null ? this.#options : { ...this.#options, ...this.#usableTiming(timing), slot }
      const outcome = await this.#desk.store.run(
        this.name,
        (run) => job(run).finally(() => (isOver = true)),
        options,
      )
      if (outcome === 'skipped') this.#tellSkipped(slot)
    } catch (error) {
      if (thrown !== null) throw (thrown as { readonly error: unknown }).error
      if (!isOver) this.#tellFailed(slot, error)
    }
  }

  /** Makes the job known to the store before its first fire. */
  announce(timing: SlotTiming): void {
    const usable = this.#usableTiming(timing)
    if (usable.cron === undefined && usable.every === undefined) return
    this.#desk.store.announce(this.name, { ...this.#options, ...usable }).catch((error: unknown) => {
      if (!this.#desk.isClosing)
        this.#desk.logger.warn(`${this.name} could not be announced: ${String(error)}`)
    })
  }

  /** The timing, if our own calculator can read it: then the store knows when the next slot is due. Else the slot alone. */
  #usableTiming(timing: SlotTiming): SlotTiming {
    const text = JSON.stringify(timing)
    if (this.#usable?.text !== text) this.#usable = { timing: this.#tried(timing), text }
    return this.#usable.timing
  }

  #tried(timing: SlotTiming): SlotTiming {
    try {
      this.#desk.store.guard(this.name, () => {}, { ...timing, slot: 1 })
      return timing
    } catch (error) {
      if (error instanceof InvalidOptionError) return {}
      throw error
    }
  }

  #tellSkipped(slot: number | null): void {
    const what = slot === null ? 'is held by' : `of ${new Date(slot).toISOString()} is for`
    this.#desk.logger.debug?.(`${this.name} ${what} another process: not run here`)
  }

  #tellFailed(slot: number | null, error: unknown): void {
    const which = slot === null ? this.name : `${this.name} of ${new Date(slot).toISOString()}`
    this.#desk.logger.error(`${which} was not run here: ${messageOf(error)}`)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
