// Prints `N passed, N failed` from vitest's JSON report; a test file that could not be loaded counts as one failure.
import { existsSync, readFileSync } from 'node:fs'

/** @typedef {{ name: string, status: string, assertionResults: unknown[] }} FileResult */

const [path = ''] = process.argv.slice(2)
if (!existsSync(path)) {
  console.log('0 passed, 1 failed')
  process.exit(1)
}
const report = JSON.parse(readFileSync(path, 'utf8'))
/** @type {FileResult[]} */
const files = report.testResults
const unloaded = files.filter(
  ({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0,
)
const leftOut = report.numPendingTests + report.numTodoTests

for (const { name } of unloaded) console.log(`Not loaded: ${name}`)
if (leftOut > 0) console.log(`${leftOut} left out`)
console.log(`${report.numPassedTests} passed, ${report.numFailedTests + unloaded.length} failed`)
process.exitCode = report.success && unloaded.length === 0 ? 0 : 1
