// What the package costs its users: packed size, and the time and memory an import adds to an empty process.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../root.mjs'

const rounds = 7
const [tarball] = process.argv.slice(2)

if (tarball !== undefined) console.log(`packed: ${(statSync(tarball).size / 1024).toFixed(1)} KiB`)
for (const entry of ['core/lock-service.js', 'index.js']) {
  const path = join(root, 'dist', entry)
  if (!existsSync(path)) throw new Error(`${path} is missing`)
  const cost = importCost(path)
  console.log(`import of ${entry}: ${cost.milliseconds.toFixed(1)} ms, ${cost.mebibytes.toFixed(1)} MiB`)
}

/**
 * The median over a few processes, measured inside each.
 * @param {string} path
 */
function importCost(path) {
  const program = `
    const rss = process.memoryUsage.rss(), before = performance.now()
    await import(${JSON.stringify(pathToFileURL(path).href)})
    console.log(performance.now() - before, (process.memoryUsage.rss() - rss) / 2 ** 20)`
  const costs = Array.from({ length: rounds }, () => {
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    })
    return stdout.split(' ').map(Number)
  })
  return {
    milliseconds: median(costs.map((cost) => cost[0] ?? NaN)),
    mebibytes: median(costs.map((cost) => cost[1] ?? NaN)),
  }
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
}
