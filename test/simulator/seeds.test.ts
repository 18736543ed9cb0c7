import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { drawPlan } from '../../simulator/draw-plan.ts'
import { faultsMet, type Meeting, meetingNames } from '../../simulator/faults-met.ts'
import { traceOf } from '../../simulator/history.ts'
import { simulate } from '../../simulator/simulate.ts'
import { tryPlan } from '../../simulator/trial.ts'

// Other seeds: SIMULATE_FROM=1000 npx vitest run test/simulator/seeds.test.ts
const from = Number(process.env['SIMULATE_FROM'] ?? 1)
const perTest = 50
const met = new Map<Meeting, number>()

describe('whatever 300 fleets meet, they keep every promise', () => {
  const groups = Array.from({ length: 6 }, (_, index) => from + index * perTest)
  it.each(groups.map((first) => [first, first + perTest - 1] as const))(
    'seeds %i to %i',
    async (first, last) => {
      for (let seed = first; seed <= last; seed++) {
        const { plan, history, violations } = await tryPlan(drawPlan(seed))
        expect(violations, `npm run simulate -- --seed ${seed}`).toEqual([])
        for (const name of faultsMet(plan, history)) met.set(name, (met.get(name) ?? 0) + 1)
      }
    },
  )

  it('and they met every kind of fault', () => {
    expect(meetingNames.filter((name) => (met.get(name) ?? 0) === 0)).toEqual([])
  })
})

describe('the same seed gives the same run', () => {
  it('in one process', async () => {
    for (const seed of [3, 4, 5]) {
      const [once, again] = [await simulate(drawPlan(seed)), await simulate(drawPlan(seed))]
      expect(once.length).toBeGreaterThan(50)
      expect(traceOf(again).join('\n')).toBe(traceOf(once).join('\n'))
    }
  })

  it('in two processes', async () => {
    const main = join(root, 'dist-programs', 'simulator', 'main.js')
    const run = () => promisify(execFile)(process.execPath, [main, '--seed', '3', '--json'])
    const [one, other] = await Promise.all([run(), run()])
    expect(one.stderr.split('\n').length).toBeGreaterThan(50)
    expect(other.stderr).toBe(one.stderr)
    expect(JSON.parse(one.stdout)).toMatchObject({ violations: 0, seeds: 1, firstSeed: 3 })
  })
})
