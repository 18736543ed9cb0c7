export { guardCronJob, type CronJobLike, type CronTimeLike } from './cron.ts'
export { guardCroner, type CronerJobLike } from './croner.ts'
export type { GuardingStore, GuardOptions, SkippedFire } from './guarded-fire.ts'
export { everySlot, type EverySlotOptions, type SlotTimer } from './interval.ts'
export {
  guardNodeCron,
  nodeCronCoordinator,
  type NodeCronContextLike,
  type NodeCronCoordinator,
  type NodeCronCoordinatorOptions,
  type NodeCronTaskLike,
} from './node-cron.ts'
export { guardNodeSchedule, type NodeScheduleOptions } from './node-schedule.ts'
