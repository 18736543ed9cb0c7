import type { CronJobLike, GuardingStore } from 'leasehold/integrations'
import type { Check } from '../../support/planting.ts'
import * as checks from './checks.ts'

/** The module got wrong in one way. */
export interface NestBug {
  /** What is done wrong. */
  readonly name: string
  /** The file that is wrong, below src. */
  readonly module: string
  /** What it exports instead. */
  readonly plant: () => object
  readonly caughtBy: readonly Check<checks.Trial>[]
}

type Callback = (...args: unknown[]) => unknown

/** A guard of each callback for itself. */
function guardEach(guard: (store: GuardingStore, name: string, callback: Callback) => Callback) {
  return (store: GuardingStore, name: string, job: CronJobLike) => {
    const parts = job as unknown as { _callbacks: Callback[] }
    parts._callbacks = parts._callbacks.map((callback) => guard(store, name, callback))
    return job
  }
}

const nearestSecond = (): number => Math.round(Date.now() / 1_000) * 1_000

export const bugs: readonly NestBug[] = [
  {
    name: 'each callback of a cron job claims the slot for itself',
    module: 'integrations/cron',
    plant: () => ({
      guardCronJob: guardEach((store, name, callback) => () => {
        void store.run(name, () => callback(), { slot: nearestSecond() })
      }),
    }),
    caughtBy: [checks.bothCallbacksRun],
  },
  {
    name: 'the run of a cron job ends when its callback has returned, not when its promise has settled',
    module: 'integrations/cron',
    plant: () => ({
      guardCronJob: guardEach((store, name, callback) => () => {
        void store.run(name, () => void callback(), { slot: nearestSecond() })
      }),
    }),
    caughtBy: [checks.nothingOverlaps],
  },
  {
    name: 'jobs are named by class and method alone',
    module: 'nestjs/guard/job-names',
    plant: () => ({
      nameJobs: (methods: readonly { readonly shortName: string }[]) =>
        new Map(methods.map((method) => [method, method.shortName])),
    }),
    caughtBy: [checks.bothNamesakesRun],
  },
  {
    name: 'an interval fires when Nest’s own timer rings',
    module: 'nestjs/guard/interval-chain',
    plant: () => ({
      IntervalChain: class {
        readonly pulse: () => void

        constructor(_periodMs: number, fire: (slot: number) => void) {
          this.pulse = () => fire(Date.now())
        }
      },
    }),
    caughtBy: [checks.intervalsAgree],
  },
  {
    name: 'what stands in for a method hides its metadata',
    module: 'scheduler/decorators/resembling',
    plant: () => ({ resembling: (_method: unknown, standIn: unknown) => standIn }),
    caughtBy: [checks.metadataIsSeen],
  },
  {
    name: 'the drain waits for its turn among the modules',
    module: 'nestjs/drain-first',
    plant: () => ({ drainFirst: () => {} }),
    caughtBy: [checks.tasksEndBeforeClients],
  },
  {
    name: 'what a job throws is left to Nest',
    module: 'nestjs/guard/current-run',
    plant: () => ({ noteFailure: (fn: () => unknown) => fn() }),
    caughtBy: [checks.failuresAreRecorded],
  },
  {
    name: 'what is not known is not guarded',
    module: 'nestjs/guard/nest-schedule',
    plant: () => ({ findExplorers: () => [] }),
    caughtBy: [checks.unknownMakesAreRefused],
  },
]
