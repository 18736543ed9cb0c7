import { callsInTime } from './calls-in-time.ts'
import type { Checker } from './checker.ts'
import { editedSchedule } from './edited-schedule.ts'
import { exceptionBound, exclusiveBelief } from './exclusive-belief.ts'
import { fenceOrder } from './fence-order.ts'
import { fencedResource } from './fenced-resource.ts'
import { honestNull } from './honest-null.ts'
import { hoards } from './hoards.ts'
import { leaks } from './leaks.ts'
import { liveness } from './liveness.ts'
import { lossInTime } from './loss-in-time.ts'
import { ownResult } from './own-result.ts'
import { slots } from './slots.ts'
import { trueReasons } from './true-reasons.ts'

/** Each knows only what the processes wrote down, and what the store says of its tasks. */
export const allCheckers: readonly Checker[] = [
  exclusiveBelief,
  exceptionBound,
  fenceOrder,
  fencedResource,
  lossInTime,
  liveness,
  leaks,
  slots,
  editedSchedule,
  trueReasons,
  callsInTime,
  honestNull,
  ownResult,
  hoards,
]
