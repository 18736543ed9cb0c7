// Three processes of the application, started at different moments; then one is killed, and later one started again.
// Counts how often each job ran.
//
//   node fleet.mjs --url redis://localhost:6379                 two minutes, jobs every ten seconds
//   node fleet.mjs --without                                    the same application without Leasehold, nobody killed
//
// Further: --seconds 120 --every 10 --starts 0,7,13 --namespace <name> --json
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: process.env['LEASEHOLD_URL'] },
    without: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '120' },
    every: { type: 'string', default: '10' },
    starts: { type: 'string', default: '0,7,13' },
    namespace: { type: 'string', default: `fleet-${Date.now()}` },
    json: { type: 'boolean', default: false },
  },
})
const { url, without } = values
if (url === undefined && !without) throw new Error('Say where the store is: --url redis://… or postgres://…')
const [seconds, every] = [Number(values.seconds), Number(values.every)]
const period = every * 1_000

/** @typedef {{ job: string, pid: number, at: number, slot: number | null }} Done */

/** @type {Done[]} */
const done = []

function startProcess() {
  const env = {
    ...process.env,
    EVERY_SECONDS: String(every),
    LEASEHOLD_NAMESPACE: values.namespace,
    ...(url === undefined ? {} : { LEASEHOLD_URL: url }),
    ...(without ? { WITHOUT_LEASEHOLD: '1' } : {}),
  }
  const main = fileURLToPath(new URL('dist/main.js', import.meta.url))
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  // After its last line, which may come later than its exit.
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal)))
  const ready = new Promise((resolve) => {
    createInterface(child.stdout).on('line', (line) => {
      // Beside what Nest logs.
      if (!line.startsWith('{')) return
      const told = JSON.parse(line)
      if ('ready' in told) resolve(undefined)
      else done.push(told)
    })
  })
  return { child, ready: Promise.race([ready, ended]), ended }
}

/** Half-way between two slots, when nothing runs. */
function betweenSlots() {
  return sleep(period - ((Date.now() + period / 2) % period))
}

const startedAt = Date.now()
const until = (/** @type {number} */ second) => sleep(Math.max(0, startedAt + second * 1_000 - Date.now()))
const fleet = []
for (const start of values.starts.split(',')) {
  await until(Number(start))
  fleet.push(startProcess())
}
await Promise.all(fleet.map(({ ready }) => ready))
if (without) await betweenSlots()
const from = Date.now()
const second = (from - startedAt) / 1_000
if (!without) {
  await until(second + seconds * 0.4)
  await betweenSlots()
  fleet[1]?.child.kill('SIGKILL')
  await until(second + seconds * 0.6)
  fleet.push(startProcess())
}
await until(second + seconds)
await betweenSlots()
const to = Date.now()
for (const { child } of fleet) child.kill('SIGTERM')
const exits = await Promise.all(fleet.map(({ ended }) => ended))

const jobs = [...new Set(done.map(({ job }) => job))].toSorted().map((job) => {
  const runs = done.filter((run) => run.job === job && run.at >= from && run.at <= to)
  const slots = runs.map(({ slot }) => slot).filter((slot) => slot !== null)
  const times = new Map(slots.map((slot) => [slot, slots.filter((each) => each === slot).length]))
  const [first, last] = [Math.min(...slots), Math.max(...slots)]
  const due = slots.length === 0 ? Math.round((to - from) / period) : (last - first) / period + 1
  return {
    job,
    due,
    runs: runs.length,
    once: [...times.values()].filter((count) => count === 1).length,
    more: [...times.values()].filter((count) => count > 1).length,
    never: slots.length === 0 ? null : due - times.size,
    processes: new Set(runs.map(({ pid }) => pid)).size,
  }
})
const store = without ? 'without Leasehold' : new URL(url ?? '').protocol
if (values.json) {
  console.log(JSON.stringify({ store, seconds, every, exits, jobs }))
} else {
  console.log(`${store}, ${seconds} s, each job every ${every} s, processes started at ${values.starts} s`)
  console.table(jobs)
  console.log(`exits: ${exits.join(', ')}`)
}
