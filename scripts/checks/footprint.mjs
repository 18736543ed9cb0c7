// What the package costs its users: packed size, and the time and memory an import adds to an empty process.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../root.mjs'

const rounds = 15
/** What the core may add. */
const bounds = { milliseconds: 15, mebibytes: 5 }
const [tarball] = process.argv.slice(2)

if (tarball !== undefined) console.log(`packed: ${(statSync(tarball).size / 1024).toFixed(1)} KiB`)
const [empty, core, all] = measure(['', importOf('core.js'), importOf('index.js')])
report('core', core, bounds)
report('leasehold', all)

/**
 * @param {string} what
 * @param {Cost[]} costs
 * @param {Cost} [bound]
 */
function report(what, costs, bound) {
  const added = (/** @type {keyof Cost} */ unit, /** @type {(values: number[]) => number} */ pick) =>
    pick(costs.map((cost) => cost[unit])) - pick(empty.map((cost) => cost[unit]))
  const mebibytes = added('mebibytes', median)
  const typical = added('milliseconds', median)
  const best = added('milliseconds', fastest)
  console.log(
    `import of ${what}: ${typical.toFixed(1)} ms (fastest ${best.toFixed(1)}), ${mebibytes.toFixed(1)} MiB over an empty process` +
      (bound === undefined ? '' : `, of ${bound.milliseconds} ms, ${bound.mebibytes} MiB`),
  )
  if (bound === undefined) return
  // Other work on the machine can only add time: the fastest runs are those that it spared.
  if (best <= bound.milliseconds && mebibytes <= bound.mebibytes) return
  console.log(`TOO MUCH: an import of ${what} must not cost more.`)
  process.exitCode = 1
}

/** @typedef {{ milliseconds: number, mebibytes: number }} Cost of a whole process, from its start to its end */

/**
 * The programs by turns, so that what slows the machine down for a while slows all of them.
 * @param {string[]} programs
 * @returns {[Cost[], Cost[], Cost[]]}
 */
function measure(programs) {
  /** @type {Cost[][]} */
  const costs = programs.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, program] of programs.entries()) costs[index]?.push(costOf(program))
  }
  return /** @type {[Cost[], Cost[], Cost[]]} */ (costs)
}

/**
 * @param {string} program
 * @returns {Cost}
 */
function costOf(program) {
  const telling = `import { writeSync } from 'node:fs'; writeSync(1, String(process.resourceUsage().maxRSS))`
  const startedAt = performance.now()
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', `${program};${telling}`], {
    encoding: 'utf8',
  })
  return { milliseconds: performance.now() - startedAt, mebibytes: Number(stdout) / 1024 }
}

/** @param {string} file in dist */
function importOf(file) {
  const path = join(root, 'dist', file)
  if (!existsSync(path)) throw new Error(`${path} is missing`)
  return `import ${JSON.stringify(pathToFileURL(path).href)}`
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
}

/** @param {number[]} values */
function fastest(values) {
  return Math.min(...values)
}
