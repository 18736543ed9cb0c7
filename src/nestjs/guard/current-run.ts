import { AsyncLocalStorage } from 'node:async_hooks'
import type { FiredRun } from '../../index.ts'

/** A guarded job while it runs. */
export interface JobInside {
  readonly run: FiredRun
  /** What the decorated method threw, which @nestjs/schedule keeps to itself. */
  failure: { readonly error: unknown } | null
}

const inside = new AsyncLocalStorage<JobInside>()

/**
 * The run of the guarded `@Cron`, `@Interval` or `@Timeout` that this code is called by: its slot, its fence, and a
 * signal that aborts when it is to stop. Undefined elsewhere, such as in a direct call of the method.
 */
export function currentRun(): FiredRun | undefined {
  return inside.getStore()?.run
}

export function runJob<Result>(job: JobInside, fn: () => Result): Result {
  return inside.run(job, fn)
}

/** Notes what a decorated method throws, and lets it pass. */
export async function noteFailure<Result>(fn: () => Result): Promise<Awaited<Result>> {
  try {
    return await fn()
  } catch (error) {
    const job = inside.getStore()
    if (job !== undefined) job.failure = { error }
    throw error
  }
}
