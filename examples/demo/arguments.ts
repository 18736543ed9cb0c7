import { parseArgs } from 'node:util'

export interface DemoArguments {
  /** null: an SQLite file in a temporary folder. */
  readonly url: string | null
  readonly json: boolean
  readonly seconds: number
}

export const usage = `npm run demo -- [--url <store>] [--seconds <n>] [--json]

  --url      sqlite:<path>, postgres://… or redis://…; default: an SQLite file in a temporary folder
  --seconds  how long to run, 10 to 3600; default 15
  --json     the summary as one JSON line at the end, and nothing else on standard output`

/** @throws Error with a message for people */
export function parseDemoArguments(args: readonly string[]): DemoArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      url: { type: 'string' },
      seconds: { type: 'string', default: '15' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false, short: 'h' },
    },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const seconds = Number(values.seconds)
  if (!Number.isInteger(seconds) || seconds < 10 || seconds > 3_600) {
    throw new Error(`--seconds must be a whole number from 10 to 3600; got ${values.seconds}`)
  }
  if (values.url?.startsWith('memory:')) {
    throw new Error(
      '--url memory: guards one process, and the demo starts three. Use sqlite:, postgres: or redis:.',
    )
  }
  return { url: values.url ?? null, json: values.json, seconds }
}
