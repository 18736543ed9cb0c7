import { execFile } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { programPath } from '../support/programs.ts'

interface Ended {
  readonly result: unknown
  /** What of the event loop was active when the scenario was over. */
  readonly active: readonly string[]
  readonly exitCode: number | null
  readonly signal: string | null
}

/** Runs a scenario of the program in a process of its own, and fails if that does not end by itself. */
function run(scenario: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [programPath('quiet-process'), scenario],
      { timeout: 10_000 },
      (_error, stdout, stderr) => {
        if (stderr !== '') return reject(new Error(stderr))
        const told =
          stdout === ''
            ? { result: null, active: [] }
            : (JSON.parse(stdout) as Omit<Ended, 'exitCode' | 'signal'>)
        resolve({ ...told, exitCode: child.exitCode, signal: child.signalCode })
      },
    )
  })
}

describe('a process', () => {
  it.each([
    ['closed after all kinds of work', 'CLOSED'],
    ['closed while the store fails', ['STORE_UNAVAILABLE', 'CLOSED']],
    ['closed while the store hangs', 'STORE_UNAVAILABLE'],
  ])('%s has nothing of ours left, and ends by itself (G9)', async (scenario, result) => {
    expect(await run(scenario)).toEqual({ result, active: [], exitCode: 0, signal: null })
  })

  it.each([
    ['holds a lease, and nobody closes anything', true],
    ['holds leases and has waited, and nobody closes anything', null],
  ])('that %s ends by itself: leases keep nothing alive', async (scenario, result) => {
    expect(await run(scenario)).toMatchObject({ result, exitCode: 0, signal: null })
  })

  it('that waits for a key lives until it has it', async () => {
    expect(await run('waits, which is something to live for')).toMatchObject({
      result: true,
      exitCode: 0,
      signal: null,
    })
  })
})
