import { InvalidOptionError, type SlotTiming, UnguardableError } from '../../index.ts'
import { type CronJobLike, guardCronJob } from '../../integrations/index.ts'
import { FleetJob, type GuardDesk } from './fleet-job.ts'
import { type SchedulerOrchestrator, unknownShape } from './nest-schedule.ts'
import type { ScheduleGuardOptions } from './schedule-guard.ts'
import { type JobKind, tables, type TimedMethod } from './timed-method.ts'

/**
 * Guards the cron jobs that come to a registry: the decorated ones when the application has started, and those that it
 * adds itself, under the name that it gives them. Intervals and timeouts come as running timers, which nobody can
 * guard: of those that the application adds itself it warns.
 */
export function guardRegistry(
  orchestrator: SchedulerOrchestrator,
  desk: GuardDesk,
  guarded: readonly TimedMethod[],
  { isByDefault, unguarded }: ScheduleGuardOptions,
): void {
  const registry = orchestrator.schedulerRegistry
  const { addCronJob, addInterval, addTimeout } = registry
  const isDecorated = (kind: JobKind, name: string): boolean =>
    Object.hasOwn(orchestrator[tables[kind]], name)
  const isLeftAlone = (name: string): boolean => !isByDefault || unguarded.includes(name)

  const jobFor = (name: string): FleetJob | null => {
    const method = guarded.find(
      (each) => each.orchestrator === orchestrator && each.kind === 'cron' && each.id === name,
    )
    if (method !== undefined) return method.job
    if (isDecorated('cron', name) || isLeftAlone(name)) return null
    if (!guarded.some(({ job }) => job?.name === name)) return new FleetJob(desk, name, {})
    throw new UnguardableError(
      `The cron job ${JSON.stringify(name)} would share its runs with the decorated job of that name. Give it another name.`,
    )
  }
  const warn = (kind: JobKind, name: string): void => {
    if (isDecorated(kind, name) || isLeftAlone(name)) return
    desk.logger.warn(
      `The ${kind} ${JSON.stringify(name)} was added as a running timer, which cannot be guarded: it runs in every process. Use a decorator, a cron job or a TaskScheduler instead, or name it in the option unguarded.`,
    )
  }

  registry.addCronJob = (name, cronJob) => {
    const job = registry.doesExist('cron', name) ? null : jobFor(name)
    if (job !== null) guardJob(name, cronJob, job)
    addCronJob.call(registry, name, cronJob)
    job?.announce(cronTiming(cronJob))
  }
  registry.addInterval = (name, handle) => {
    addInterval.call(registry, name, handle)
    warn('interval', name)
  }
  registry.addTimeout = (name, handle) => {
    addTimeout.call(registry, name, handle)
    warn('timeout', name)
  }
}

/** @throws UnguardableError */
function guardJob(name: string, cronJob: CronJobLike, job: FleetJob): void {
  try {
    guardCronJob(job.asStore(), job.name, cronJob, { onStoreError: job.tellStoreError })
  } catch (error) {
    if (error instanceof InvalidOptionError) throw unknownShape(`cron job ${JSON.stringify(name)}`, error)
    throw error
  }
}

function cronTiming({ cronTime: { source, timeZone } }: CronJobLike): SlotTiming {
  return typeof source === 'string' && timeZone !== undefined ? { cron: source, timeZone } : {}
}
