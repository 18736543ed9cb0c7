import type { Checker } from './checker.ts'
import { exceptionBound, exclusiveBelief } from './exclusive-belief.ts'
import { fenceOrder } from './fence-order.ts'
import { fencedResource } from './fenced-resource.ts'
import { leaks } from './leaks.ts'
import { liveness } from './liveness.ts'
import { lossInTime } from './loss-in-time.ts'
import { slots } from './slots.ts'

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
]
