import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency } from '@nestjs/common'
import {
  type ConnectOptions,
  type Duration,
  InvalidOptionError,
  type LockService,
  type LockServiceOptions,
  type TaskSchedulerOptions,
} from '../index.ts'

/** Where the store is: one of `locks`, `driver`, `url`; without any, `LEASEHOLD_URL` says it. */
export interface StoreOptions extends Omit<LockServiceOptions, 'namespace'>, Pick<ConnectOptions, 'client'> {
  /** A service that the application made itself. It is not closed with the application. */
  readonly locks?: LockService | undefined
  /** A store by its URL, as for `connect()`. Default: the environment variable `LEASEHOLD_URL`; in production it has to be set. */
  readonly url?: string | undefined
  /** Separates environments that share a store. Default: that of the URL, else `LEASEHOLD_NAMESPACE`, else `'default'`. */
  readonly namespace?: string | undefined
}

export interface LeaseholdModuleOptions extends StoreOptions {
  /**
   * Which jobs of @nestjs/schedule one process of the fleet runs. `'all'`: each `@Cron`, `@Interval` and `@Timeout` that
   * is not marked `@Unguarded()`, and cron jobs added at run time. `'explicit'`: those marked `@Guarded()`. `false`: none.
   * Default `'all'`, and `false` for a named store.
   */
  readonly guard?: 'all' | 'explicit' | false | undefined
  /** Names of jobs that run in every process, for those that cannot be marked: of libraries, or added at run time. */
  readonly unguarded?: readonly string[] | undefined
  /**
   * How long running tasks may go on when the application shuts down, before their signals are aborted. Stay below what
   * your platform grants. Default `'30s'`.
   */
  readonly drain?: Duration | undefined
  /** The options of the `TaskScheduler`. */
  readonly scheduler?: Omit<TaskSchedulerOptions, 'locks' | 'keepAlive'> | undefined
}

/** What has to be known before anything is made. */
export interface LeaseholdModuleExtras {
  /** The name of a second store; its services are injected by `@InjectLocks(name)` and its siblings. */
  readonly name?: string | undefined
  /** Whether every module of the application can inject the services. Default true. */
  readonly isGlobal?: boolean | undefined
}

export interface LeaseholdModuleAsyncOptions extends LeaseholdModuleExtras, Pick<ModuleMetadata, 'imports'> {
  /** Makes the options, of what is injected. */
  readonly useFactory: (...args: never[]) => LeaseholdModuleOptions | Promise<LeaseholdModuleOptions>
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[] | undefined
}

const ownNames = ['locks', 'url', 'namespace', 'guard', 'unguarded', 'drain', 'scheduler']
const passedOn = [
  'driver',
  'client',
  'ttl',
  'heartbeat',
  'maxLifetime',
  'waitStep',
  'requestTimeout',
  'retention',
  'clock',
  'random',
]

/** What a wrong option would do in silence is refused. @throws InvalidOptionError */
export function checkModuleOptions(options: LeaseholdModuleOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError('options', 'The options of LeaseholdModule must be an object.')
  }
  const known = [...ownNames, ...passedOn]
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const where = ['imports', 'inject', 'name', 'isGlobal'].includes(name)
      ? ' It goes beside useFactory, not into what that makes.'
      : ` Its options: ${known.join(', ')}.`
    throw new InvalidOptionError(name, `LeaseholdModule has no option ${JSON.stringify(name)} here.${where}`)
  }
  const { locks, driver, url, guard, unguarded } = options
  const given = Object.entries({ locks, driver, url }).filter(([, value]) => value !== undefined)
  if (given.length > 1) {
    const names = given.map(([name]) => name)
    throw new InvalidOptionError(
      names[1] ?? 'url',
      `LeaseholdModule takes one of ${names.join(' and ')}: each names a store.`,
    )
  }
  if (guard !== undefined && guard !== 'all' && guard !== 'explicit' && guard) {
    throw new InvalidOptionError('guard', "guard must be 'all', 'explicit' or false.")
  }
  if (unguarded !== undefined && !(Array.isArray(unguarded) && unguarded.every(isText))) {
    throw new InvalidOptionError('unguarded', 'unguarded must be a list of names.')
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
