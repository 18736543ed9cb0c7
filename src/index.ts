export { LockService } from './lock-service.ts'
export { connect, type ConnectOptions } from './connect.ts'
export type { ForceReleaseOptions, ForceReleaseOutcome, ListOptions, RunResult } from './core/lock-service.ts'
export type { Lease } from './core/lease.ts'
export type { LeaseInfo } from './core/lease-info.ts'
export type { Holder } from './core/holder.ts'
export type { ReleaseOutcome } from './core/give-back.ts'
export type { AcquireOptions, LeaseOptions, LockServiceOptions, RunOptions } from './core/options.ts'
export type { Duration, DurationString } from './core/duration.ts'
export type { Clock, Timer, TimerOptions } from './core/clock.ts'
export { systemClock } from './core/clock.ts'
export { currentLease } from './core/ambient.ts'
export { onEvent } from './core/channels.ts'
export type { LeaseholdEventName, LeaseholdEvents } from './core/channels.ts'
export {
  type Applied,
  ClosedError,
  DriverFault,
  type DriverFaultKind,
  DriverMissingError,
  DuplicateTaskError,
  FenceUnsafeError,
  InvalidOptionError,
  KeyHeldError,
  LeaseholdError,
  type LeaseholdErrorCode,
  LeaseLostError,
  type LossReason,
  ReentrantAcquireError,
  RunStoppedError,
  SchedulerStateError,
  StoreUnavailableError,
  StoreUnusableError,
  UnguardableError,
  UnknownTaskError,
} from './core/errors.ts'
export {
  type FiredRun,
  ScheduledTaskStore,
  type ScheduledTaskStoreOptions,
} from './scheduler/scheduled-task-store.ts'
export type { FireOptions, SlotTiming } from './scheduler/fire-options.ts'
export { TaskScheduler } from './scheduler/task-scheduler.ts'
export type { HistoryOptions, StopOptions, TaskSchedulerOptions } from './scheduler/scheduler-options.ts'
export type { CronTiming, IntervalTiming, TaskOptions, TaskPolicyOptions } from './scheduler/task-options.ts'
export type { TaskHandler, TaskRun } from './scheduler/task-run.ts'
export type {
  CancelOptions,
  CancelOutcome,
  ControlOptions,
  ControlOutcome,
} from './scheduler/task-control.ts'
export type { BackfillOptions } from './scheduler/manual-runs.ts'
export type { RunningTask, TaskStatus, TaskSummary } from './scheduler/task-status.ts'
export type { Timing } from './scheduler/schedule.ts'
export type { RunHistoryEntry } from './scheduler/history.ts'
export {
  Exclusive,
  type ExclusiveDecorator,
  type ExclusiveOptions,
} from './scheduler/decorators/exclusive.ts'
export { Scheduled, type ScheduledDecorator } from './scheduler/decorators/scheduled.ts'
export {
  type ScheduledMethod,
  scheduledMethods,
  type ScheduledOptions,
} from './scheduler/decorators/scheduled-methods.ts'
export { useLocks } from './scheduler/decorators/used-locks.ts'
