import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from '../../scripts/root.mjs'
import { plantNames } from '../../torture/worker/planted-bugs.ts'
import { isAvailable } from '../support/stores.ts'

interface Planting {
  readonly plant: string
  readonly nemesis: string
  readonly finds: string
  readonly seconds?: number
}

/** Each bug, the faults it takes, and the checker that has to find it. */
const plantings: readonly Planting[] = [
  { plant: 'fence-from-the-client', nemesis: 'none', finds: 'fence-order' },
  { plant: 'fence-loses-digits', nemesis: 'none', finds: 'fence-order' },
  { plant: 'renewal-believed-unanswered', nemesis: 'black-hole', finds: 'exclusive-belief', seconds: 12 },
  { plant: 'deadline-too-long', nemesis: 'stop', finds: 'exclusive-belief', seconds: 12 },
  { plant: 'renewal-recreates', nemesis: 'deletion', finds: 'exception-bound', seconds: 12 },
  { plant: 'late-loss-signal', nemesis: 'black-hole', finds: 'loss-in-time' },
  { plant: 'ttl-too-long', nemesis: 'kill', finds: 'liveness' },
  { plant: 'release-not-sent', nemesis: 'none', finds: 'liveness' },
  { plant: 'timer-left-behind', nemesis: 'none', finds: 'leaks' },
  { plant: 'rejection-unhandled', nemesis: 'none', finds: 'leaks' },
  { plant: 'decided-is-granted', nemesis: 'none', finds: 'once-per-slot' },
  { plant: 'early-is-granted', nemesis: 'none', finds: 'no-slot-early' },
  { plant: 'always-retried', nemesis: 'kill', finds: 'at-most-once', seconds: 10 },
  { plant: 'never-retried', nemesis: 'kill', finds: 'at-least-once', seconds: 10 },
  { plant: 'run-believed-unanswered', nemesis: 'black-hole', finds: 'no-overlap-of-runs', seconds: 12 },
  { plant: 'completion-not-sent', nemesis: 'none', finds: 'records-agree', seconds: 6 },
  { plant: 'resource-without-fences', nemesis: 'stop', finds: 'fenced-resource', seconds: 15 },
  { plant: 'run-log-with-holes', nemesis: 'none', finds: 'no-silent-miss', seconds: 8 },
  { plant: 'down-is-held', nemesis: 'refused', finds: 'honest-null', seconds: 8 },
  { plant: 'wait-without-end', nemesis: 'none', finds: 'wait-in-time' },
  { plant: 'release-takes-its-time', nemesis: 'none', finds: 'release-in-time' },
  { plant: 'release-answers-for-the-callback', nemesis: 'none', finds: 'own-result' },
  { plant: 'some-renewals-forgotten', nemesis: 'many-leases', finds: 'many-held', seconds: 16 },
  { plant: 'old-schedule-returns', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 10 },
  { plant: 'edit-fires-the-past', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 10 },
  { plant: 'edits-not-logged', nemesis: 'edited-schedule', finds: 'edited-schedule', seconds: 8 },
  { plant: 'missed-for-no-reason', nemesis: 'none', finds: 'true-reasons', seconds: 8 },
]

const program = join(root, 'dist-programs', 'torture', 'main.js')

/** Runs until it is found; whether faults hit the right moment is a matter of luck. */
async function tortureWith(
  { plant, nemesis, seconds = 4 }: Planting,
  seed: number,
): Promise<readonly string[]> {
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
  const { found } = JSON.parse(stdout) as { found: Record<string, number> }
  return Object.keys(found)
}

describe.skipIf(!(await isAvailable('redis')))('a bug in the workers turns the torture red', () => {
  it('each of them is planted', () => {
    expect(existsSync(program)).toBe(true)
    expect(plantings.map(({ plant }) => plant).toSorted()).toEqual(plantNames.toSorted())
  })

  it.each(plantings)(
    '$plant, found by $finds under $nemesis',
    async (planting) => {
      let found: readonly string[] = []
      for (let seed = 1; seed <= 4 && !found.includes(planting.finds); seed++) {
        found = await tortureWith(planting, seed)
      }
      expect(found).toContain(planting.finds)
    },
    300_000,
  )
})
