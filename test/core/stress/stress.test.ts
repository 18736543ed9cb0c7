import { afterEach, describe, expect, it } from 'vitest'
import { bugs } from '../planted/bugs.ts'
import { coreWith, uproot } from '../planted/plant.ts'
import { stress } from './stress.ts'

// One seed alone: STRESS_SEED=17 npx vitest run test/core/stress
const only = process.env['STRESS_SEED']
const seeds = only === undefined ? Array.from({ length: 200 }, (_, index) => index + 1) : [Number(only)]

describe('500 random operations of four processes over bad links break no promise', () => {
  const perTest = 25
  const groups = Array.from({ length: Math.ceil(seeds.length / perTest) }, (_, index) =>
    seeds.slice(index * perTest, (index + 1) * perTest),
  )
  it.each(groups.map((group) => [group[0], group.at(-1), group] as const))(
    'seeds %i to %i',
    async (_first, _last, group) => {
      for (const seed of group) await stress(seed)
    },
  )
})

it('is the same every time', async () => {
  const [once, again] = [await stress(5), await stress(5)]
  expect(once.length).toBeGreaterThan(500)
  expect(again).toEqual(once)
})

describe('it turns red where', () => {
  afterEach(uproot)

  it.each([
    ['the deadline is counted from the answer', /G[13]: /],
    ['an older answer moves the deadline back', /G[13]: /],
    ['an answer after the loss brings the lease back', /G1: |left timers/],
    ['busy is taken for held', /G[17]: /],
    ['a store that is down is taken for a key that is held', /G7: /],
    ['a release throws where the store does not answer', /G8: /],
    ['the wall clock is not looked at', /G1: /],
    ['the wall clock alone is looked at', /G[13]: /],
    ['only a renewal tells of a loss', /G3: /],
    ['what has ended is not forgotten', /left timers/],
  ])('%s', async (name, complaint) => {
    const bug = bugs.find((one) => one.name === name)
    if (bug === undefined) throw new Error(`There is no such bug: ${name}.`)
    const { LockService: Service } = await coreWith(bug)
    let caught = ''
    for (let seed = 1; seed <= 40 && caught === ''; seed++) {
      caught = await stress(seed, { Service }).then(
        () => '',
        (error: unknown) => (error as Error).message,
      )
    }
    expect(caught).toMatch(complaint)
  })
})
