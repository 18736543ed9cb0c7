import type { ModulesContainer } from '@nestjs/core'
import { UnguardableError } from '../../index.ts'
import type { CronJobLike } from '../../integrations/index.ts'

/** What is used of the `SchedulerRegistry` of @nestjs/schedule. */
export interface SchedulerRegistry {
  addCronJob(name: string, job: CronJobLike): void
  addInterval(name: string, handle: unknown): void
  addTimeout(name: string, handle: unknown): void
  doesExist(type: 'cron' | 'interval' | 'timeout', name: string): boolean
}

type Table = Record<string, { readonly ref?: unknown; readonly timeout?: unknown }>

/** What is used of its `SchedulerOrchestrator`: what it mounts when the application has started. */
export interface SchedulerOrchestrator {
  cronJobs: Table
  intervals: Table
  timeouts: Table
  readonly schedulerRegistry: SchedulerRegistry
}

/** What is used of its `ScheduleExplorer`: finds the decorated methods of all providers and controllers. */
export interface ScheduleExplorer {
  readonly schedulerOrchestrator: SchedulerOrchestrator
  onModuleInit(): void
  explore(): void
  lookupSchedulers(instance: object, key: string): unknown
}

/**
 * The explorers of an application: one for each `ScheduleModule.forRoot()` with options of its own.
 *
 * @throws UnguardableError if there is a scheduler of Nest of another make: its jobs would run unguarded
 */
export function findExplorers(modules: ModulesContainer): ScheduleExplorer[] {
  const explorers: ScheduleExplorer[] = []
  for (const { providers } of modules.values()) {
    const named = (name: string): unknown[] =>
      [...providers.values()]
        .filter(({ metatype }) => (metatype as { name?: unknown } | null)?.name === name)
        .map((wrapper) => wrapper.instance)
    if (named('SchedulerRegistry').length === 0) continue
    const found = named('ScheduleExplorer')
    if (found.length === 0 || !found.every((each) => isExplorer(each))) throw unknownShape('ScheduleModule')
    explorers.push(...found)
  }
  return explorers
}

function isExplorer(value: unknown): value is ScheduleExplorer {
  if (!hasFunctions(value, 'onModuleInit', 'explore', 'lookupSchedulers')) return false
  const orchestrator = value['schedulerOrchestrator']
  if (!isObject(orchestrator)) return false
  const tables = [orchestrator['cronJobs'], orchestrator['intervals'], orchestrator['timeouts']]
  const registry = orchestrator['schedulerRegistry']
  const known = hasFunctions(registry, 'addCronJob', 'addInterval', 'addTimeout', 'doesExist')
  return known && tables.every((table) => isObject(table))
}

/** What is refused at the start instead of running in every process. */
export function unknownShape(what: string, cause?: unknown): UnguardableError {
  return new UnguardableError(
    `The ${what} of this application is of a make that Leasehold does not know, so that its jobs would run in every process. Use @nestjs/schedule 6 or 12, or say guard: false.`,
    { cause },
  )
}

function hasFunctions(value: unknown, ...names: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && names.every((name) => typeof value[name] === 'function')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
