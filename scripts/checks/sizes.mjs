// The size budgets of .size-limit.json, one line each.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../root.mjs'

const program = join(root, 'node_modules', 'size-limit', 'bin.js')
const { stdout, stderr } = spawnSync(process.execPath, [program, '--json'], { cwd: root, encoding: 'utf8' })

/** @typedef {{ name: string, passed: boolean, size: number, sizeLimit: number }} Result */

/** @type {Result[] | { error: string }} */
const results = stdout.startsWith('[') ? JSON.parse(stdout) : { error: stdout + stderr }
if ('error' in results) {
  console.log(results.error)
} else {
  for (const { name, passed, size, sizeLimit } of results) {
    console.log(
      `${passed ? '' : 'TOO BIG: '}${name}: ${kilobytes(size)} of ${kilobytes(sizeLimit)} kB gzipped`,
    )
  }
}
process.exitCode = 'error' in results || results.some(({ passed }) => !passed) ? 1 : 0

/** @param {number} bytes */
function kilobytes(bytes) {
  return (bytes / 1000).toFixed(1)
}
