import { parseArgs } from 'node:util'
import { nemesisNames } from './nemesis/nemesis.ts'
import { plantNames } from './worker/planted-bugs.ts'

/** `pgbouncer` is PostgreSQL behind one in transaction mode. */
const drivers = ['redis', 'sqlite', 'postgres', 'pgbouncer'] as const
export type DriverName = (typeof drivers)[number]

export interface TortureArguments {
  readonly driver: DriverName
  readonly seconds: number
  readonly seed: number
  readonly json: boolean
  /** null: all that can be done to the store. */
  readonly nemesis: string | null
  /** A bug to plant. */
  readonly plant: string | null
  readonly workers: number
  /** Keep the histories although nothing was found. */
  readonly keep: boolean
}

export const usage = `npm run torture -- [--driver <name>] [--seconds <n>] [--seed <n>] [--nemesis <name>] [--json]

  --driver   ${drivers.join(', ')}; default redis
  --seconds  how long faults go on, 3 to 86400; default 60
  --seed     of the faults and the workers' choices; default a new one
  --nemesis  only this kind or group of faults: ${nemesisNames.join(', ')}
  --workers  processes at a time, 2 to 32; default 6
  --plant    a bug in the workers, which a checker has to find: ${plantNames.join(', ')}
  --keep     keeps the histories; they are kept anyway when something was found
  --json     the summary as one JSON line at the end, and nothing else on standard output`

/** @throws Error with a message for people */
export function parseTortureArguments(args: readonly string[]): TortureArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      driver: { type: 'string', default: 'redis' },
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string' },
      nemesis: { type: 'string' },
      plant: { type: 'string' },
      workers: { type: 'string', default: '6' },
      keep: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const { nemesis = null, plant = null } = values
  if (!drivers.includes(values.driver as DriverName)) {
    throw new Error(`--driver must be one of ${drivers.join(', ')}; got ${values.driver}`)
  }
  if (nemesis !== null && !nemesisNames.includes(nemesis)) throw new Error(`There is no nemesis ${nemesis}`)
  if (plant !== null && !plantNames.includes(plant)) throw new Error(`There is no bug ${plant} to plant`)
  return {
    driver: values.driver as DriverName,
    seconds: integer('seconds', values.seconds, 3, 86_400),
    seed: integer('seed', values.seed ?? String(Math.floor(Math.random() * 1_000_000)), 0, 2 ** 31 - 1),
    json: values.json,
    nemesis,
    plant,
    workers: integer('workers', values.workers, 2, 32),
    keep: values.keep,
  }
}

function integer(name: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new Error(`--${name} must be a whole number from ${min} to ${max}; got ${text}`)
  }
  return value
}
