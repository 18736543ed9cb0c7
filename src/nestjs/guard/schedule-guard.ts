import type { ModulesContainer } from '@nestjs/core'
import { UnguardableError } from '../../index.ts'
import { marksOf } from '../marks.ts'
import { FleetJob, type GuardDesk } from './fleet-job.ts'
import { nameJobs } from './job-names.ts'
import { findExplorers, type ScheduleExplorer } from './nest-schedule.ts'
import { guardRegistry } from './guarded-registry.ts'
import { type JobKind, tables, TimedMethod } from './timed-method.ts'

export interface ScheduleGuardOptions {
  /** Whether jobs are guarded that say nothing about it. */
  readonly isByDefault: boolean
  /** Names of jobs that run in every process. */
  readonly unguarded: readonly string[]
}

const attached = new WeakSet<ScheduleExplorer>()

/**
 * Puts itself between @nestjs/schedule and what it fires: the decorated methods of the application, and the cron jobs
 * that are added at run time. Only what the timers call is replaced; the application's own instances stay as they are.
 *
 * To be called before the application has started: until then nothing is armed, and it does not matter whether
 * @nestjs/schedule has looked for its methods before.
 *
 * @returns the guarded methods
 * @throws UnguardableError
 */
export function guardSchedules(
  modules: ModulesContainer,
  desk: GuardDesk,
  options: ScheduleGuardOptions,
): TimedMethod[] {
  const explorers = findExplorers(modules)
  const moduleNames = providingModules(modules)
  const methods: TimedMethod[] = []
  for (const explorer of explorers) exploreGuarded(explorer, methods, moduleNames, options)
  for (const [method, name] of nameJobs(methods)) {
    if (!options.unguarded.includes(name)) method.job = new FleetJob(desk, name, method.options)
  }
  const guarded = methods.filter(({ job }) => job !== null)
  for (const { schedulerOrchestrator } of explorers) {
    guardRegistry(schedulerOrchestrator, desk, guarded, options)
  }
  return guarded
}

/** Lets an explorer look for its methods again, and find stand-ins for those that are to be guarded: they are added. */
function exploreGuarded(
  explorer: ScheduleExplorer,
  methods: TimedMethod[],
  moduleNames: ReadonlyMap<object, string>,
  { isByDefault }: ScheduleGuardOptions,
): void {
  if (attached.has(explorer)) {
    throw new UnguardableError(
      'The jobs of this application are guarded by another LeaseholdModule already. Say guard: false in all but one.',
    )
  }
  attached.add(explorer)
  const orchestrator = explorer.schedulerOrchestrator
  for (const table of Object.values(tables)) orchestrator[table] = {}

  const lookup = explorer.lookupSchedulers
  explorer.lookupSchedulers = (instance, key) => {
    const method = (instance as Record<string, unknown>)[key]
    const options = typeof method === 'function' ? marksOf(instance, method, isByDefault) : null
    if (options === null) return lookup.call(explorer, instance, key)
    // One instance under two tokens, or seen by two schedule modules, is still one job.
    if (methods.some((each) => each.instance === instance && each.key === key)) return undefined
    const timed = new TimedMethod(orchestrator, instance, key, options)
    const before = idsOf(explorer)
    const answer = lookup.call(explorer, { [key]: timed.standIn }, key)
    const added = [...idsOf(explorer)].find(([id]) => !before.has(id))
    if (added !== undefined) {
      const [id, kind] = added
      timed.identify({ id: id.slice(kind.length), kind, module: moduleNames.get(instance) ?? 'unknown' })
      methods.push(timed)
    }
    return answer
  }
  explorer.onModuleInit = () => {}
  explorer.explore()
}

/** What @nestjs/schedule has found so far, each with its kind before its name. */
function idsOf({ schedulerOrchestrator }: ScheduleExplorer): Map<string, JobKind> {
  const kinds = Object.keys(tables) as JobKind[]
  return new Map(
    kinds.flatMap((kind) =>
      Object.keys(schedulerOrchestrator[tables[kind]]).map((id) => [kind + id, kind] as const),
    ),
  )
}

function providingModules(modules: ModulesContainer): Map<object, string> {
  const names = new Map<object, string>()
  for (const { providers, controllers, metatype } of modules.values()) {
    for (const wrapper of [...providers.values(), ...controllers.values()]) {
      const instance = wrapper.instance
      if (typeof instance === 'object' && instance !== null) names.set(instance, metatype.name)
    }
  }
  return names
}
