import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { programPath } from '../support/programs.ts'

it('a held lease keeps at most 1 KiB of heap, and a released one nothing', async () => {
  const program = programPath('heap-of-leases')
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program])
  const { isHeld, perLease, left } = JSON.parse(stdout) as Record<string, number>
  expect(isHeld).toBe(true)
  expect(perLease).toBeGreaterThan(100)
  expect(perLease).toBeLessThanOrEqual(1_024)
  expect(left).toBeLessThan(50)
})
