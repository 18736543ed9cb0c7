// Processes that hold leases and run tasks on a real store, faults of every kind, and checkers that read afterwards
// what everybody wrote down. Exit code 0 only if none of them found anything.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTortureArguments, type TortureArguments, usage } from './arguments.ts'
import { watchEnd } from './end-watch.ts'
import { describe } from './summary.ts'
import { torture } from './torture.ts'

async function run(): Promise<void> {
  let args: TortureArguments
  try {
    args = parseTortureArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-torture-'))
  console.error(`Torture of ${args.driver}: seed ${args.seed}, ${args.seconds} s.`)
  const { summary, violations } = await torture(args, folder)
  for (const { checker, what, at } of violations.slice(0, 30)) {
    console.error(`${checker} at ${at.toFixed(1)}: ${what}`)
  }
  if (violations.length === 0 && !args.keep) rmSync(folder, { recursive: true, force: true })
  else console.error(`The histories are in ${folder}`)
  const text = args.json ? JSON.stringify(summary) : describe(summary)
  console.log(text)
  process.exitCode = violations.length === 0 ? 0 : 1
  // Its own service is closed as well: what the faults did to it may not keep this process alive either.
  watchEnd({ withinMs: 10_000, kills: true })
}

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await run()
