export { LeaseholdModule } from './leasehold-module.ts'
export type {
  LeaseholdModuleAsyncOptions,
  LeaseholdModuleExtras,
  LeaseholdModuleOptions,
  StoreOptions,
} from './module-options.ts'
export { Guarded, type GuardedOptions, Unguarded } from './marks.ts'
export { currentRun } from './guard/current-run.ts'
export {
  getLocksToken,
  getTasksToken,
  getTaskStoreToken,
  InjectLocks,
  InjectTasks,
  InjectTaskStore,
} from './tokens.ts'
export { type LeaseholdHealth, LeaseholdHealthIndicator } from './health.ts'
