import { type DynamicModule, Module, type Provider } from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { LockService } from '../index.ts'
import { LeaseholdHealthIndicator } from './health.ts'
import { LeaseholdRuntime } from './leasehold-runtime.ts'
import {
  checkModuleOptions,
  type LeaseholdModuleAsyncOptions,
  type LeaseholdModuleExtras,
  type LeaseholdModuleOptions,
} from './module-options.ts'
import { getLocksToken, getTasksToken, getTaskStoreToken } from './tokens.ts'

/**
 * Leasehold in a Nest application: `LockService`, `TaskScheduler` and `ScheduledTaskStore` to inject; every `@Cron`,
 * `@Interval` and `@Timeout` of @nestjs/schedule runs in one process of the fleet instead of in each; `@Scheduled` and
 * `@Exclusive` work on providers and controllers.
 *
 * @example
 * @Module({ imports: [ScheduleModule.forRoot(), LeaseholdModule.forRoot({ url: 'redis://…' })] })
 * export class AppModule {}
 */
export class LeaseholdModule {
  /** Without options the store is that of `LEASEHOLD_URL`, or this process. @throws InvalidOptionError */
  static forRoot(options: LeaseholdModuleOptions & LeaseholdModuleExtras = {}): DynamicModule {
    const { name, isGlobal, ...rest } = options
    checkModuleOptions(rest)
    return moduleOf({ name, isGlobal, useFactory: () => rest })
  }

  /**
   * @example
   * LeaseholdModule.forRootAsync({
   *   imports: [RedisModule],
   *   inject: [REDIS],
   *   useFactory: (client: Redis) => ({ driver: redisDriver(client), namespace: 'prod' }),
   * })
   */
  static forRootAsync(options: LeaseholdModuleAsyncOptions): DynamicModule {
    return moduleOf(options)
  }
}

/** What makes the services. Not global itself: Nest closes global modules after all others, and tasks need those. */
class LeaseholdCoreModule {}

/** Metadata without decorator syntax. */
Module({})(LeaseholdModule)
Module({})(LeaseholdCoreModule)

function moduleOf(options: LeaseholdModuleAsyncOptions): DynamicModule {
  const { name, isGlobal = true, imports = [], inject = [], useFactory } = options
  const make = useFactory as (...args: unknown[]) => LeaseholdModuleOptions | Promise<LeaseholdModuleOptions>
  const runtime = Symbol(`leasehold:runtime:${name ?? 'default'}`)
  const providers: Provider[] = [
    {
      provide: runtime,
      inject: [ModulesContainer, ...inject],
      useFactory: async (modules: ModulesContainer, ...args: unknown[]) => {
        const made = await make(...args)
        checkModuleOptions(made)
        return LeaseholdRuntime.open(name, made, modules)
      },
    },
    { provide: getLocksToken(name), inject: [runtime], useFactory: ({ locks }: LeaseholdRuntime) => locks },
    { provide: getTasksToken(name), inject: [runtime], useFactory: ({ tasks }: LeaseholdRuntime) => tasks },
    {
      provide: getTaskStoreToken(name),
      inject: [runtime],
      useFactory: ({ taskStore }: LeaseholdRuntime) => taskStore,
    },
  ]
  const exported = [getLocksToken(name), getTasksToken(name), getTaskStoreToken(name)]
  if (name === undefined) {
    providers.push({
      provide: LeaseholdHealthIndicator,
      inject: [LockService],
      useFactory: (locks: LockService) => new LeaseholdHealthIndicator(locks),
    })
    exported.push(LeaseholdHealthIndicator)
  }
  const core: DynamicModule = { module: LeaseholdCoreModule, imports, providers, exports: exported }
  return { module: LeaseholdModule, global: isGlobal, imports: [core], exports: [core] }
}
