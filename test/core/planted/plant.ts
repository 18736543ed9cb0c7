import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import * as errors from '../../../src/core/errors.ts'
import type { Bug } from './bug.ts'
import { bugs } from './bugs.ts'
import type { CoreUnderTrial } from './core-under-trial.ts'

const core = (module: string) => fileURLToPath(new URL(`../../../src/core/${module}.ts`, import.meta.url))

/** The core with a bug in it: loaded anew, with one of its modules replaced. */
export async function coreWith({ module, plant }: Bug): Promise<CoreUnderTrial> {
  vi.resetModules()
  // The checks tell errors by their class.
  vi.doMock(core('errors'), () => errors)
  vi.doMock(core(module), async (importOriginal) => {
    const original = await importOriginal<object>()
    return { ...original, ...plant(original as never) }
  })
  const { LockService } = await import('../../../src/core/lock-service.ts')
  const { Deadline } = await import('../../../src/core/deadline.ts')
  const { systemClock } = await import('../../../src/core/clock.ts')
  const { currentLease } = await import('../../../src/core/ambient.ts')
  return { LockService, Deadline, systemClock, currentLease }
}

/** Takes every bug out again. */
export function uproot(): void {
  for (const module of new Set(['errors', ...bugs.map((bug) => bug.module)])) vi.doUnmock(core(module))
  vi.resetModules()
}
