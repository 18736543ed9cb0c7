import { afterEach, describe, expect, it } from 'vitest'
import { plantedBugs } from '../../torture/worker/planted-bugs.ts'
import { uproot } from '../core/planted/plant.ts'
import { bugs as postgresBugs } from '../drivers/postgres/planted/bugs.ts'
import { tableRows } from '../docs/tables.ts'
import { plantings } from '../torture/plantings.ts'
import { contractExhibits, coreExhibits, postgresExhibits, simulatorExhibits } from './exhibits.ts'
import {
  type Caught,
  caughtByContract,
  caughtByCore,
  caughtBySimulator,
  coreBug,
  storeBug,
  systemWith,
} from './measure.ts'

afterEach(uproot)

const page = 'docs/museum.md'
const rows = tableRows(page, ['bug', 'found by', 'what turns red', 'after'])
/** LEASEHOLD_MUSEUM=print: the rows as they are to be. */
const prints = process.env['LEASEHOLD_MUSEUM'] === 'print'

describe(page, () => {
  it.each(contractExhibits)('has a row for %s, found by the contract suite', async (id) => {
    const bug = storeBug(id)
    expectRow(`\`${id}\`: ${bug.what}`, 'contract', await caughtByContract(bug), 'calls')
  })

  it.each(coreExhibits)('has a row for "%s", found by the checks of the core', async (name) => {
    expectRow(name, 'core', await caughtByCore(coreBug(name)), 'calls')
  })

  it.each(simulatorExhibits)('has a row for %s, broken by %s in simulated fleets', async (promise, name) => {
    expectRow(titleOf(name), 'simulator', await caughtBySimulator(promise, await systemWith(name)), 'seeds')
  })

  it.each(postgresExhibits)('has a row for "%s", found on a real PostgreSQL', (name) => {
    const [check] = postgresBugs.find((bug) => bug.name === name)?.caughtBy ?? []
    expect(rows).toContainEqual([name, 'postgres', check?.sentence, '1 crash'])
  })

  it.each(plantings)('has a row for $plant, found by the torture', ({ plant, finds, nemesis }) => {
    const row = rows.find(([bug, where]) => where === 'torture' && bug?.startsWith(`\`${plant}\``))
    const faults = nemesis === 'none' ? 'no faults' : `\`${nemesis}\``
    const what = plantedBugs[plant]?.what
    expect(row).toEqual([
      what === undefined ? expect.any(String) : `\`${plant}\`: ${what}`,
      'torture',
      `\`${finds}\`, under ${faults}`,
      expect.stringMatching(/^\d+ operations$/),
    ])
  })

  it('has rows for nothing else', () => {
    const shown =
      contractExhibits.length +
      coreExhibits.length +
      simulatorExhibits.length +
      postgresExhibits.length +
      plantings.length
    expect(rows.length).toBe(shown)
  })
})

function titleOf(name: string): string {
  return name.includes(' ') ? name : `\`${name}\`: ${storeBug(name).what}`
}

/** The figures are of the same order, not the same: some behaviours wait, and the simulator draws other plans one day. */
function expectRow(bug: string, where: string, { by, after }: Caught, unit: string): void {
  if (prints) console.log(`| ${bug} | ${where} | ${by} | ${after} ${unit} |`)
  const row = rows.find((one) => one[0] === bug && one[1] === where && one[2] === by)
  expect(row, `${bug}, found by ${by}`).toBeDefined()
  const [figure = '', name] = row?.[3]?.split(' ') ?? []
  expect(name).toBe(unit)
  expect(after).toBeLessThanOrEqual(10 * (Number(figure) + 1))
  expect(Number(figure)).toBeLessThanOrEqual(10 * (after + 1))
}
