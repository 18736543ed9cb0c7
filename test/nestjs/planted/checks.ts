import { setTimeout as sleep } from 'node:timers/promises'
import type { ModuleMetadata, Type } from '@nestjs/common'
import { Cron, Interval, ScheduleModule } from '@nestjs/schedule'
import type * as leasehold from 'leasehold'
import type { memoryDriver } from 'leasehold/memory'
import type { LeaseholdModule } from 'leasehold/nestjs'
import { expect, vi } from 'vitest'
import type { Check } from '../../support/planting.ts'
import { freshNamespace } from '../../support/stores.ts'
import { openApp } from '../nest-app.ts'

/** The module under trial, as it is or with a bug in it. */
export interface Trial {
  readonly leasehold: Pick<typeof leasehold, 'Exclusive' | 'TaskScheduler'>
  readonly memoryDriver: typeof memoryDriver
  readonly LeaseholdModule: typeof LeaseholdModule
}

const everySecond = '* * * * * *'

export const bothCallbacksRun: Check<Trial> = {
  sentence: 'all callbacks of a cron job run for its slot',
  run: (trial) =>
    withPods(trial, async (start) => {
      const ran: string[] = []
      const app = await start({})
      const { SchedulerRegistry } = await import('@nestjs/schedule')
      const { CronJob } = await import('cron')
      const job = CronJob.from({ cronTime: everySecond, onTick: () => void ran.push('one') })
      job.addCallback(() => void ran.push('other'))
      app.get(SchedulerRegistry).addCronJob('job', job)
      job.start()
      await reach(() => ran.length >= 2)
      await job.stop()
      expect(new Set(ran)).toEqual(new Set(['one', 'other']))
    }),
}

export const nothingOverlaps: Check<Trial> = {
  sentence: 'a cron job that still runs is not begun again',
  run: (trial) =>
    withPods(trial, async (start) => {
      let [running, most, begun] = [0, 0, 0]
      const Tasks = classWith('Tasks', { handleCron: [Cron(everySecond)] }, async () => {
        running += 1
        begun += 1
        most = Math.max(most, running)
        await sleep(1_300)
        running -= 1
      })
      await start({ providers: [Tasks] })
      await start({ providers: [Tasks] })
      await reach(() => begun >= 2)
      expect(most).toBe(1)
    }),
}

export const bothNamesakesRun: Check<Trial> = {
  sentence: 'two jobs whose classes have one name both run',
  run: (trial) =>
    withPods(trial, async (start) => {
      const ran = new Set<string>()
      const module = (label: string) => ({
        module: { [label]: class {} }[label] as Type,
        providers: [classWith('Tasks', { handleCron: [Cron(everySecond)] }, () => ran.add(label))],
      })
      await start({ imports: [module('BillingModule'), module('MailModule')] })
      await reach(() => ran.size > 0)
      await sleep(500)
      expect(ran).toEqual(new Set(['BillingModule', 'MailModule']))
    }),
}

export const intervalsAgree: Check<Trial> = {
  sentence: 'pods that were started at different moments run an interval once a period',
  run: (trial) =>
    withPods(trial, async (start) => {
      const at: number[] = []
      const Tasks = classWith('Tasks', { poll: [Interval(500)] }, () => at.push(Date.now()))
      for (let pod = 0; pod < 3; pod += 1) {
        await start({ providers: [Tasks] })
        await sleep(150)
      }
      await reach(() => at.length > 0)
      const from = at.length
      const startedAt = Date.now()
      await sleep(2_000)
      const periods = (Date.now() - startedAt) / 500
      expect(at.length - from).toBeLessThanOrEqual(Math.ceil(periods) + 1)
    }),
}

export const metadataIsSeen: Check<Trial> = {
  sentence: 'a cron below @Exclusive is a cron',
  run: (trial) =>
    withPods(trial, async (start) => {
      const { Exclusive } = trial.leasehold
      const ran = vi.fn()
      const decorators = [Cron(everySecond), Exclusive('key') as unknown as MethodDecorator]
      await start({ providers: [classWith('Tasks', { handleCron: decorators }, async () => ran())] })
      await reach(() => ran.mock.calls.length > 0, 2_500)
      expect(ran).toHaveBeenCalled()
    }),
}

export const tasksEndBeforeClients: Check<Trial> = {
  sentence: 'running jobs end before any module closes its client',
  run: (trial) =>
    withPods(trial, async (start) => {
      const said: string[] = []
      const Tasks = classWith('Tasks', { handleCron: [Cron(everySecond)] }, async () => {
        said.push('begun')
        await sleep(600)
        said.push('ended')
      })
      const client = { onModuleDestroy: () => void said.push('closed') }
      class FeatureModule {}
      const providers = [Tasks, { provide: 'CLIENT', useValue: client }]
      const app = await start({ imports: [{ module: FeatureModule, providers }] })
      await reach(() => said.length > 0)
      await app.close()
      expect(said).toEqual(['begun', 'ended', 'closed'])
    }),
}

export const failuresAreRecorded: Check<Trial> = {
  sentence: 'a job that throws is recorded as failed, although Nest keeps the error to itself',
  run: (trial) =>
    withPods(trial, async (start) => {
      const Tasks = classWith('Tasks', { handleCron: [Cron(everySecond)] }, () => {
        throw new RangeError('no paper')
      })
      const app = await start({ providers: [Tasks] })
      const tasks = app.get(trial.leasehold.TaskScheduler)
      const states = async () => (await tasks.history('Tasks.handleCron')).map(({ state }) => state)
      await vi.waitFor(async () => expect((await states()).length).toBeGreaterThan(2), 5_000)
      expect(new Set(await states())).toEqual(new Set(['failed', 'registered']))
    }),
}

export const unknownMakesAreRefused: Check<Trial> = {
  sentence: 'an application whose schedule module is of an unknown make does not start',
  run: (trial) =>
    withPods(trial, async (start) => {
      const OtherRegistry = { SchedulerRegistry: class {} }.SchedulerRegistry
      class OtherSchedule {}
      const starting = start({ imports: [{ module: OtherSchedule, providers: [OtherRegistry] }] })
      await expect(starting).rejects.toMatchObject({ code: 'UNGUARDABLE' })
    }),
}

/** Applications of one fleet with the module under trial; they are closed in the end. */
async function withPods(
  { LeaseholdModule: Leasehold, memoryDriver: driver }: Trial,
  body: (start: (metadata: ModuleMetadata) => ReturnType<typeof openApp>) => Promise<void>,
): Promise<void> {
  const apps: Awaited<ReturnType<typeof openApp>>[] = []
  const [store, namespace] = [freshNamespace(), freshNamespace()]
  try {
    await body(async ({ imports = [], ...rest }) => {
      const ours = [ScheduleModule.forRoot(), Leasehold.forRoot({ driver: driver({ store }), namespace })]
      const app = await openApp({ imports: [...ours, ...imports], ...rest })
      apps.push(app)
      return app
    })
  } finally {
    await Promise.all(apps.map((app) => app.close()))
  }
}

/** A provider with one decorated method, written without decorator syntax; the first decorator is nearest to the method. */
function classWith(
  name: string,
  methods: Readonly<Record<string, readonly MethodDecorator[]>>,
  body: () => unknown,
): Type {
  const made = { [name]: class {} }[name] as Type
  for (const [key, decorators] of Object.entries(methods)) {
    let descriptor: PropertyDescriptor = {
      value: { [key]: () => body() }[key],
      configurable: true,
      writable: true,
    }
    for (const decorate of decorators) {
      descriptor =
        (decorate(made.prototype as object, key, descriptor) as PropertyDescriptor | undefined) ?? descriptor
    }
    Object.defineProperty(made.prototype, key, descriptor)
  }
  return made
}

/** Gives what does not come a chance to be missed by the check itself. */
async function reach(isReached: () => boolean, withinMs = 6_000): Promise<void> {
  const until = Date.now() + withinMs
  while (!isReached() && Date.now() < until) await sleep(20)
}
