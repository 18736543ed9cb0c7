import { type DynamicModule, Module } from '@nestjs/common'
import { ScheduleModule } from '@nestjs/schedule'
import { LeaseholdModule } from 'leasehold/nestjs'
import { SlowTasksService } from './slow-tasks.service.js'
import { TasksService } from './tasks.service.js'

@Module({})
export class AppModule {
  static forEnvironment(env: NodeJS.ProcessEnv): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ScheduleModule.forRoot(),
        // The one line that is new. LEASEHOLD_URL says where the store is.
        ...(env['WITHOUT_LEASEHOLD'] === undefined ? [LeaseholdModule.forRoot()] : []),
      ],
      providers: [TasksService, ...(env['SLOW_TASK'] === undefined ? [] : [SlowTasksService])],
    }
  }
}
