import { FenceUnsafeError, quoted } from '../core/errors.ts'

/** A run was granted by a store that has gone back in time. */
export function unsafeFence(task: string, fence: number): FenceUnsafeError {
  return new FenceUnsafeError(
    task,
    `The store issued the fence ${fence} for a run of ${quoted(task)}, which is no safe integer or not greater than one seen before. ` +
      'The store went back in time (restored, failed over, clock stepped back with records lost). The slot was skipped.',
  )
}
