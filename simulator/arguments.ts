import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'

export interface SimulateArguments {
  /** How many, beginning with `from`. */
  readonly seeds: number
  readonly from: number
  /** Only this one, with its trace. */
  readonly seed: number | null
  readonly threads: number
  readonly json: boolean
}

export const usage = `npm run simulate -- [--seeds <n>] [--from <seed>] [--seed <seed>] [--threads <n>] [--json]

  --seeds    how many runs; default 2000
  --from     the first seed; default 1
  --seed     this run alone, and print all that happened in it
  --threads  default: one for each processor
  --json     the summary as one JSON line at the end`

/** @throws Error with a message for people */
export function parseSimulateArguments(args: readonly string[]): SimulateArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '2000' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      threads: { type: 'string', default: String(availableParallelism()) },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  return {
    seeds: whole('--seeds', values.seeds, 1),
    from: whole('--from', values.from, 0),
    seed: values.seed === undefined ? null : whole('--seed', values.seed, 0),
    threads: whole('--threads', values.threads, 1),
    json: values.json,
  }
}

function whole(name: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < least || text.trim() === '')
    throw new Error(`${name} must be a whole number of at least ${least}; got ${text}`)
  return value
}
