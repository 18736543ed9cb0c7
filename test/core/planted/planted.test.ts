import { afterEach, describe, expect, it } from 'vitest'
import { bugs } from './bugs.ts'
import * as checks from './checks.ts'
import { type Check, realCore } from './core-under-trial.ts'
import * as limitChecks from './limit-checks.ts'
import { coreWith, uproot } from './plant.ts'

afterEach(uproot)

const all: readonly Check[] = [...Object.values(checks), ...Object.values(limitChecks)]

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
