import { parseArgs } from 'node:util'

export interface BenchArguments {
  /** Names or first parts of names; null: all that are not extra. */
  readonly only: readonly string[] | null
  readonly json: boolean
  /** Where to write a CPU profile instead of measuring; null: nowhere. */
  readonly profile: string | null
  readonly help: boolean
}

export const usage = `npm run bench -- [--only <scenario>] [--json] [--profile <folder>]

  --only     a scenario, or the first part of its name: redis.cycle.100, redis.cycle, redis; may be repeated
  --json     one line of JSON per result on standard output, and nothing else there
  --profile  measures nothing: writes a CPU profile of redis.cycle.100 into this folder, and prints what took the time`

/** @throws Error with a message for people */
export function parseBenchArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string', multiple: true },
      json: { type: 'boolean', default: false },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  return { only: values.only ?? null, json: values.json, profile: values.profile ?? null, help: values.help }
}

interface Named {
  readonly name: string
  readonly isExtra?: boolean
}

/** @throws Error with a message for people, for a name that fits nothing */
export function chosen<Scenario extends Named>(
  scenarios: readonly Scenario[],
  only: readonly string[] | null,
): readonly Scenario[] {
  if (only === null) return scenarios.filter(({ isExtra }) => isExtra !== true)
  const fits = (name: string, asked: string): boolean => name === asked || name.startsWith(`${asked}.`)
  const unknown = only.find((asked) => !scenarios.some(({ name }) => fits(name, asked)))
  if (unknown !== undefined) {
    throw new Error(
      `There is no scenario ${unknown}. There are ${scenarios.map(({ name }) => name).join(', ')}.`,
    )
  }
  return scenarios.filter(({ name }) => only.some((asked) => fits(name, asked)))
}
