import { Inject, type InjectionToken } from '@nestjs/common'
import { LockService, ScheduledTaskStore, TaskScheduler } from '../index.ts'

/** What to inject for the `LockService` of a named store; without a name the class itself. */
export function getLocksToken(name?: string): InjectionToken {
  return name === undefined ? LockService : `leasehold:locks:${name}`
}

/** What to inject for the `TaskScheduler` of a named store; without a name the class itself. */
export function getTasksToken(name?: string): InjectionToken {
  return name === undefined ? TaskScheduler : `leasehold:tasks:${name}`
}

/** What to inject for the `ScheduledTaskStore` of a named store; without a name the class itself. */
export function getTaskStoreToken(name?: string): InjectionToken {
  return name === undefined ? ScheduledTaskStore : `leasehold:task-store:${name}`
}

type InjectDecorator = ParameterDecorator & PropertyDecorator

/** Injects the `LockService` of a named store. */
export function InjectLocks(name?: string): InjectDecorator {
  return Inject(getLocksToken(name))
}

/** Injects the `TaskScheduler` of a named store. */
export function InjectTasks(name?: string): InjectDecorator {
  return Inject(getTasksToken(name))
}

/** Injects the `ScheduledTaskStore` of a named store. */
export function InjectTaskStore(name?: string): InjectDecorator {
  return Inject(getTaskStoreToken(name))
}
