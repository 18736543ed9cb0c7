import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Trial } from './checks.ts'
import { bugs, type NestBug } from './bugs.ts'

const pathOf = (module: string) => fileURLToPath(new URL(`../../../src/${module}.ts`, import.meta.url))

/** Loads the module anew, with one of its files replaced. */
async function trialWith(bug: NestBug | null): Promise<Trial> {
  vi.resetModules()
  if (bug !== null) {
    vi.doMock(pathOf(bug.module), async (importOriginal) => ({
      ...(await importOriginal<object>()),
      ...bug.plant(),
    }))
  }
  const { LeaseholdModule } = await import('../../../src/nestjs/index.ts')
  const { memoryDriver } = await import('../../../src/drivers/memory/index.ts')
  return { LeaseholdModule, memoryDriver, leasehold: await import('../../../src/index.ts') }
}

afterEach(() => {
  for (const { module } of bugs) vi.doUnmock(pathOf(module))
  vi.resetModules()
})

describe('the module for Nest, as it is', () => {
  const checks = new Set(bugs.flatMap(({ caughtBy }) => caughtBy))
  it.each([...checks].map((check) => [check.sentence, check] as const))('%s', async (_sentence, check) => {
    await check.run(await trialWith(null))
  })
})

describe('a check turns red where', () => {
  it.each(bugs.map((bug) => [bug.name, bug] as const))('%s', async (_name, bug) => {
    const trial = await trialWith(bug)
    for (const check of bug.caughtBy) {
      const caught: unknown = await check.run(trial).then(
        () => null,
        (error: unknown) => error,
      )
      expect(caught, `caught by "${check.sentence}"`).toMatchObject({ name: 'AssertionError' })
    }
  })
})
