// What follows from the named exceptions, in figures: a fleet at work on a store that fails over without its last writes,
// splits in two, or has its clock stepped, again and again. Exit code 0 only if nothing happened that
// docs/guarantees.md does not name.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { figuresOf, violationsOf } from './figures.ts'
import { measure } from './measure.ts'
import { startPostgresPair } from './postgres-pair.ts'
import { startRedisPair } from './redis-pair.ts'
import { startSteppedServer } from './stepped-server.ts'
import type { Upheaval } from './upheaval.ts'

const stores = ['redis', 'postgres'] as const
const whats = ['failover', 'split', 'clock'] as const

const usage = `npm run exceptions -- [--store <name>] [--what <name>] [--replicated] [--times <n>] [--seed <n>] [--json]

  --store       ${stores.join(', ')}; default redis
  --what        failover: the primary dies and its replica takes over without its last writes;
                split: the primary goes on answering half of its clients beside the new one;
                clock: the server's clock is set wrong, and right again some seconds later. Default failover
  --step        for clock: how far it is set forward or back, in seconds, as in --step=-60; default 60
  --replicated  redis: min-replicas-to-write 1; postgres: synchronous_commit remote_apply with synchronous_standby_names
  --times       how often, 1 to 10000; default 30
  --seed        of what the workers choose and for how long it lasts; default a new one
  --json        the figures as one JSON line at the end, and nothing else on standard output`

interface Arguments {
  readonly store: (typeof stores)[number]
  readonly what: (typeof whats)[number]
  readonly replicated: boolean
  readonly step: number
  readonly times: number
  readonly seed: number
  readonly json: boolean
}

async function run(): Promise<void> {
  let args: Arguments
  try {
    args = parse(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  const { json, ...asked } = args
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-exceptions-'))
  const upheaval = await start(args)
  const kind = args.what === 'clock' ? 'server-clock' : 'failover'
  const measured = await measure(upheaval, { kind, times: args.times, seed: args.seed, folder })
  await upheaval.close()
  const violations = violationsOf(measured)
  for (const { checker, what, at } of violations.slice(0, 30))
    console.error(`${checker} at ${at.toFixed(1)}: ${what}`)
  if (violations.length === 0) rmSync(folder, { recursive: true, force: true })
  else console.error(`The histories are in ${folder}`)
  const figures = { ...asked, ...figuresOf(measured), violations: violations.length }
  const text = json ? JSON.stringify(figures) : JSON.stringify(figures, null, 2)
  process.stdout.write(`${text}\n`, () => process.exit(violations.length === 0 ? 0 : 1))
}

function start({ store, what, replicated, step }: Arguments): Promise<Upheaval> {
  if (what === 'clock') return startSteppedServer(6, { store, stepMs: step * 1_000 })
  const splits = what === 'split'
  return store === 'redis'
    ? startRedisPair(6, { splits, minReplicas: replicated })
    : startPostgresPair(6, { splits, synchronous: replicated })
}

/** @throws Error with a message for people */
function parse(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      store: { type: 'string', default: 'redis' },
      what: { type: 'string', default: 'failover' },
      step: { type: 'string', default: '60' },
      replicated: { type: 'boolean', default: false },
      times: { type: 'string', default: '30' },
      seed: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const store = stores.find((name) => name === values.store)
  const what = whats.find((name) => name === values.what)
  if (store === undefined) throw new Error(`--store must be one of ${stores.join(', ')}; got ${values.store}`)
  if (what === undefined) throw new Error(`--what must be one of ${whats.join(', ')}; got ${values.what}`)
  return {
    store,
    what,
    replicated: values.replicated,
    step: integer('step', values.step, -86_400, 86_400),
    times: integer('times', values.times, 1, 10_000),
    seed: integer('seed', values.seed ?? String(Math.floor(Math.random() * 1_000_000)), 0, 2 ** 31 - 1),
    json: values.json,
  }
}

function integer(name: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new Error(`--${name} must be a whole number from ${min} to ${max}; got ${text}`)
}

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await run()
