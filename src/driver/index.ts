export type * from './driver.ts'
export type * from './lock-driver.ts'
export type * from './task-driver.ts'
