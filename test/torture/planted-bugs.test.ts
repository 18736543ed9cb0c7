import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { plantNames } from '../../torture/worker/planted-bugs.ts'
import { isAvailable } from '../support/stores.ts'
import { type Planting, plantings } from './plantings.ts'

const program = join(root, 'dist-programs', 'torture', 'main.js')

/** For docs/museum.md. */
const prints = process.env['LEASEHOLD_MUSEUM'] === 'print'

/** Runs until it is found; whether faults hit the right moment is a matter of luck. */
async function tortureWith(
  { plant, nemesis, seconds = 4 }: Planting,
  seed: number,
): Promise<Readonly<Record<string, number>>> {
  const args = ['--driver', 'redis', '--seconds', String(seconds), '--seed', String(seed)]
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [program, ...args, '--nemesis', nemesis, '--plant', plant, '--json'],
      { timeout: 90_000, killSignal: 'SIGKILL' },
      (_error, out, err) => resolve({ stdout: out, stderr: err }),
    )
  })
  const folder = /The histories are in (\S+)/.exec(stderr)?.[1]
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  const { foundAfter } = JSON.parse(stdout) as { foundAfter: Record<string, number> }
  return foundAfter
}

describe.skipIf(!(await isAvailable('redis')))('a bug in the workers turns the torture red', () => {
  it('each of them is planted', () => {
    expect(existsSync(program)).toBe(true)
    expect(plantings.map(({ plant }) => plant).toSorted()).toEqual(plantNames.toSorted())
  })

  it.each(plantings)(
    '$plant, found by $finds under $nemesis',
    async (planting) => {
      let found: Readonly<Record<string, number>> = {}
      for (let seed = 1; seed <= 4 && !(planting.finds in found); seed++) {
        found = await tortureWith(planting, seed)
      }
      expect(Object.keys(found)).toContain(planting.finds)
      if (prints)
        console.log(`${planting.plant}: ${planting.finds} after ${found[planting.finds]} operations`)
    },
    300_000,
  )
})
