import { Logger } from '@nestjs/common'
import type { SlotTiming } from '../../index.ts'
import type { GuardedOptions } from '../marks.ts'
import { noteFailure } from './current-run.ts'
import type { FleetJob } from './fleet-job.ts'
import { IntervalChain } from './interval-chain.ts'
import type { NamedMethod } from './job-names.ts'
import type { SchedulerOrchestrator } from './nest-schedule.ts'

/** Where @nestjs/schedule keeps each kind of job. */
export const tables = { cron: 'cronJobs', interval: 'intervals', timeout: 'timeouts' } as const

export type JobKind = keyof typeof tables

type AnyFunction = (...args: unknown[]) => unknown

/** What @nestjs/schedule calls a job that was given no name. */
const generatedName = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
/** The shortest interval whose slots the store can know. */
const shortestKnown = 100

/** A method with `@Cron`, `@Interval` or `@Timeout`, and what stands in for it where the timers call it. */
export class TimedMethod implements NamedMethod {
  readonly orchestrator: SchedulerOrchestrator
  readonly instance: object
  readonly key: string
  readonly options: GuardedOptions
  /** Has the method's metadata. */
  readonly standIn: AnyFunction
  kind: JobKind = 'cron'
  /** Under which name @nestjs/schedule keeps it. */
  id = ''
  module = ''
  /** Null: it runs in every process. */
  job: FleetJob | null = null
  readonly #method: AnyFunction
  #chain: IntervalChain | null = null

  constructor(orchestrator: SchedulerOrchestrator, instance: object, key: string, options: GuardedOptions) {
    this.orchestrator = orchestrator
    this.instance = instance
    this.key = key
    this.options = options
    this.#method = (instance as Record<string, AnyFunction>)[key] as AnyFunction
    this.standIn = (...args) => this.#call(args)
    Object.setPrototypeOf(this.standIn, this.#method)
  }

  identify({ id, kind, module }: Pick<TimedMethod, 'id' | 'kind' | 'module'>): void {
    this.id = id
    this.kind = kind
    this.module = module
  }

  get shortName(): string {
    const { name } = this.options
    if (typeof name === 'function') return name(this.instance as never)
    if (name !== undefined) return name
    return generatedName.test(this.id) ? `${this.instance.constructor.name}.${this.key}` : this.id
  }

  /** Of an interval; crons know theirs when they are mounted. */
  get timing(): SlotTiming {
    return this.kind === 'interval' && this.#periodMs >= shortestKnown ? { every: this.#periodMs } : {}
  }

  #call(args: readonly unknown[]): unknown {
    const work = (): Promise<unknown> => noteFailure(() => this.#method.call(this.instance, ...args))
    const { job } = this
    // A cron job is guarded as a whole: it may have more callbacks.
    if (job === null || this.kind === 'cron') return work()
    if (this.kind === 'timeout') return job.fire({}, work)
    this.#chain ??= this.#chainOf(job, work)
    return this.#chain.pulse()
  }

  #chainOf(job: FleetJob, work: () => Promise<unknown>): IntervalChain {
    const registry = this.orchestrator.schedulerRegistry
    // As @nestjs/schedule logs it.
    const logger = new Logger('Scheduler')
    return new IntervalChain(
      this.#periodMs,
      (slot) => void job.fire({ ...this.timing, slot }, work).catch((error: unknown) => logger.error(error)),
      () => registry.doesExist('interval', this.id),
    )
  }

  get #periodMs(): number {
    const timeout = Number(this.orchestrator.intervals[this.id]?.timeout)
    return timeout >= 1 ? Math.trunc(timeout) : 1
  }
}
