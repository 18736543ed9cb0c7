import type { DynamicModule, ModuleMetadata } from '@nestjs/common'
import { ScheduleModule } from '@nestjs/schedule'
import { memoryDriver } from 'leasehold/memory'
import { LeaseholdModule, type LeaseholdModuleOptions } from 'leasehold/nestjs'
import { freshNamespace } from '../support/stores.ts'
import { startApp } from './nest-app.ts'

export const everySecond = '* * * * * *'

/** Applications of one fleet, in this process, on one store. */
export class Fleet {
  readonly store: LeaseholdModuleOptions = {
    driver: memoryDriver({ store: freshNamespace() }),
    namespace: freshNamespace(),
  }
  readonly options: LeaseholdModuleOptions

  constructor(options: LeaseholdModuleOptions = {}) {
    this.options = { ...this.store, ...options }
  }

  leasehold(): DynamicModule {
    return LeaseholdModule.forRoot(this.options)
  }

  /** Starts one more application with the schedule module and ours. */
  start(metadata: ModuleMetadata): ReturnType<typeof startApp> {
    const { imports = [], ...rest } = metadata
    return startApp({ imports: [ScheduleModule.forRoot(), this.leasehold(), ...imports], ...rest })
  }
}
