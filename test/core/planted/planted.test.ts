import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import * as errors from '../../../src/core/errors.ts'
import { bugs, type Bug } from './bugs.ts'
import * as checks from './checks.ts'
import { type Check, type CoreUnderTrial, realCore } from './core-under-trial.ts'

const core = (module: string) => fileURLToPath(new URL(`../../../src/core/${module}.ts`, import.meta.url))

/** The core with a bug in it: loaded anew, with one of its modules replaced. */
async function coreWith({ module, plant }: Bug): Promise<CoreUnderTrial> {
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

afterEach(() => {
  for (const module of new Set(['errors', ...bugs.map((bug) => bug.module)])) vi.doUnmock(core(module))
  vi.resetModules()
})

const all: readonly Check[] = Object.values(checks)

describe('the core', () => {
  it.each(all.map((check) => [check.sentence, check] as const))('%s', async (_sentence, check) => {
    await check.run(realCore)
  })
})

describe('a check turns red where', () => {
  it.each(bugs.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    const planted = await coreWith(bug)
    for (const check of bug.caughtBy) {
      const caught: unknown = await check.run(planted).then(
        () => null,
        (error: unknown) => error,
      )
      expect(caught, `caught by "${check.sentence}"`).toMatchObject({ name: 'AssertionError' })
    }
  })

  it('there is a planted bug: none of the checks stands there for nothing', () => {
    const used = new Set(bugs.flatMap(({ caughtBy }) => caughtBy))
    expect(all.filter((check) => !used.has(check)).map(({ sentence }) => sentence)).toEqual([])
  })
})
