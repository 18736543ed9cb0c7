// npm run torture:long: one torture after the other for hours, with rotating drivers and seeds. Stops at the first that
// finds something or does not end, and says where its histories are. One JSON line for each run on standard output.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { endWithNpm } from './end-with-npm.mjs'
import { root } from './root.mjs'
import { fail } from './run.mjs'
import { setup } from './setup.mjs'

const usage = `npm run torture:long -- [--hours <n>] [--seconds <n>] [--seed <n>] [--drivers <names>]

  --hours    how long to go on; default 8
  --seconds  how long the faults of each run last; default 120
  --seed     of the first run, counted up from there; default a new one
  --drivers  in this order, again and again; default redis,postgres,sqlite`

endWithNpm()
const { hours, seconds, seed, drivers } = parseArguments(process.argv.slice(2))
await setup()
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
  process.once(signal, () => process.exit(130))

const program = join(root, 'dist-programs', 'torture', 'main.js')
/** What a run may take besides its faults until it counts as one that does not end. */
const besidesMs = 240_000
const endsAt = Date.now() + hours * 3_600_000
const sums = { runs: 0, violations: 0, operations: 0, grants: 0, takeovers: 0 }

for (let run = 0; Date.now() < endsAt; run++) {
  const driver = drivers[run % drivers.length] ?? ''
  const code = await torture(driver, seed + run)
  if (code !== 0)
    fail(`The run on ${driver} with seed ${seed + run} ended with ${code}. So far: ${JSON.stringify(sums)}`)
}
console.log(JSON.stringify({ ...sums, hours, seed }))

/**
 * @param {string} driver
 * @param {number} runSeed
 * @returns {Promise<number | string>}
 */
function torture(driver, runSeed) {
  const args = ['--driver', driver, '--seconds', String(seconds), '--seed', String(runSeed), '--json']
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const end = () => child.kill()
  process.once('exit', end)
  const late = setTimeout(() => child.kill('SIGKILL'), seconds * 1_000 + besidesMs)
  let output = ''
  child.stdout.on('data', (piece) => (output += String(piece)))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(late)
      process.off('exit', end)
      process.stdout.write(output)
      add(output)
      resolve(code ?? signal ?? 'nothing')
    })
  })
}

/** @param {string} output */
function add(output) {
  if (output === '') return
  const summary = JSON.parse(output)
  sums.runs++
  for (const name of /** @type {const} */ (['violations', 'operations', 'grants', 'takeovers'])) {
    sums[name] += summary[name]
  }
}

/** @param {string[]} args */
function parseArguments(args) {
  const { values } = parseArgs({
    args,
    options: {
      hours: { type: 'string', default: '8' },
      seconds: { type: 'string', default: '120' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      drivers: { type: 'string', default: 'redis,postgres,sqlite' },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const numbers = { hours: Number(values.hours), seconds: Number(values.seconds), seed: Number(values.seed) }
  const wrong = Object.entries(numbers).find(([, value]) => !(value >= 0))
  if (wrong !== undefined) fail(`--${wrong[0]} must be a number.\n\n${usage}`)
  return { ...numbers, drivers: values.drivers.split(',') }
}
