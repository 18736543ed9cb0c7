import { Logger } from '@nestjs/common'
import type { ModulesContainer } from '@nestjs/core'
import {
  InvalidOptionError,
  type LockService,
  type ScheduledTaskStore,
  type TaskScheduler,
} from '../index.ts'
import { registerTasks, useLocksInClasses, useLocksInInstances } from './decorated-providers.ts'
import { drainFirst } from './drain-first.ts'
import { logEvents } from './event-log.ts'
import type { GuardDesk } from './guard/fleet-job.ts'
import { guardSchedules } from './guard/schedule-guard.ts'
import type { LeaseholdModuleOptions } from './module-options.ts'
import { openServices, type StoreServices } from './store-services.ts'

const longTime = 2 ** 31 - 1

/** One store in the life of an application: Nest calls its hooks. */
export class LeaseholdRuntime {
  readonly #name: string | undefined
  readonly #options: LeaseholdModuleOptions
  readonly #modules: ModulesContainer
  readonly #services: StoreServices
  readonly #logger: Logger
  readonly #desk: GuardDesk
  readonly #endLog: () => void
  #guarded: readonly string[] = []
  #keepAlive: NodeJS.Timeout | null = null
  #draining: Promise<void> | null = null

  /** @throws InvalidOptionError, DriverMissingError, StoreUnavailableError, StoreUnusableError */
  static async open(
    name: string | undefined,
    options: LeaseholdModuleOptions,
    modules: ModulesContainer,
  ): Promise<LeaseholdRuntime> {
    return new LeaseholdRuntime(name, options, modules, await openServices(options))
  }

  private constructor(
    name: string | undefined,
    options: LeaseholdModuleOptions,
    modules: ModulesContainer,
    services: StoreServices,
  ) {
    this.#name = name
    this.#options = options
    this.#modules = modules
    this.#services = services
    this.#logger = new Logger(name === undefined ? 'Leasehold' : `Leasehold:${name}`)
    this.#desk = { store: services.taskStore, logger: this.#logger, isClosing: false }
    this.#endLog = logEvents(services.locks.namespace, this.#logger, (task) => !this.#guarded.includes(task))
    if (this.#isDefault) useLocksInClasses(modules, services.locks)
  }

  get locks(): LockService {
    return this.#services.locks
  }

  get tasks(): TaskScheduler {
    return this.#services.tasks
  }

  get taskStore(): ScheduledTaskStore {
    return this.#services.taskStore
  }

  /** @throws UnguardableError */
  onModuleInit(): Promise<void> {
    return this.#orGiveUp(() => {
      if (this.#isDefault) useLocksInInstances(this.#modules, this.locks)
      drainFirst(this.#modules, () => this.onModuleDestroy())
      this.#guardSchedules()
    })
  }

  /** @throws UnguardableError, DuplicateTaskError, InvalidOptionError, StoreUnusableError */
  onApplicationBootstrap(): Promise<void> {
    return this.#orGiveUp(async () => {
      if (this.#isDefault) this.#refuseSharedNames(registerTasks(this.#modules, this.tasks))
      await this.#services.tasks.startWithTasks(
        () => (this.#keepAlive ??= setInterval(() => {}, longTime)),
        (error) => this.#logger.error(`The TaskScheduler could not start: ${String(error)}`),
      )
    })
  }

  /** No new fires from here on; resolves when what runs has ended, at most after `drain`. */
  onModuleDestroy(): Promise<void> {
    this.#draining ??= this.#drain()
    return this.#draining
  }

  /** After requests have ended: what they held is given back, and the store is closed if we opened it. */
  async onApplicationShutdown(): Promise<void> {
    await this.onModuleDestroy()
    if (this.#services.isOwn) await this.locks.close()
    this.#endLog()
  }

  async #drain(): Promise<void> {
    this.#desk.isClosing = true
    const { drain = '30s' } = this.#options
    await Promise.all([this.tasks.stop({ drain }), this.taskStore.stop({ drain })])
    if (this.#keepAlive !== null) clearInterval(this.#keepAlive)
  }

  #guardSchedules(): void {
    const { guard = this.#isDefault ? 'all' : false, unguarded = [] } = this.#options
    if (guard === false) return
    const methods = guardSchedules(this.#modules, this.#desk, { isByDefault: guard === 'all', unguarded })
    this.#guarded = methods.flatMap(({ job }) => job?.name ?? [])
    if (this.#guarded.length > 0) {
      this.#logger.log(`Once for the whole fleet: ${this.#guarded.join(', ')}`)
    }
    for (const { job, timing } of methods) job?.announce(timing)
  }

  /** @throws InvalidOptionError */
  #refuseSharedNames(tasks: readonly string[]): void {
    const shared = this.#guarded.find((name) => tasks.includes(name))
    if (shared === undefined) return
    throw new InvalidOptionError(
      'name',
      `${JSON.stringify(shared)} names both a @Scheduled task and a guarded job of @nestjs/schedule: they would share their slots. Give one another name.`,
    )
  }

  /** An application that does not start is never closed: nobody else would give back what was opened. */
  async #orGiveUp(step: () => void | Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      await this.onApplicationShutdown()
      throw error
    }
  }

  get #isDefault(): boolean {
    return this.#name === undefined
  }
}
