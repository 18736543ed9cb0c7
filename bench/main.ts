// Leasehold beside what else could be used, measured in one run. The results are compared with each other, never with
// those of another run or machine. Exit code 0 unless something did not work: a missed bar is a result.
import { type BenchArguments, chosen, parseBenchArguments, usage } from './arguments.ts'
import { describeMachine } from './machine.ts'
import { jsonLine, table, verdictLine } from './output.ts'
import { profileCycles } from './profile.ts'
import { compare, type Result } from './results.ts'
import { type Scenario, usualPace } from './scenario.ts'
import { scenarios } from './scenarios/all.ts'
import { Stores } from './stores.ts'

async function run(): Promise<void> {
  let args: BenchArguments
  let wanted: readonly Scenario[]
  try {
    args = parseBenchArguments(process.argv.slice(2))
    wanted = chosen(scenarios, args.only)
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  if (args.help) {
    console.log(`${usage}\n\nScenarios: ${scenarios.map(({ name }) => name).join(', ')}`)
    return
  }
  const stores = new Stores()
  try {
    if (args.profile === null) await measure(wanted, stores, args.json)
    else console.log(await profileCycles(stores, args.profile))
  } finally {
    // What a failed scenario has left open must not see its server go.
    if (process.exitCode !== undefined) process.exit()
    await stores.close()
  }
}

async function measure(wanted: readonly Scenario[], stores: Stores, json: boolean): Promise<void> {
  const all: Result[] = []
  console.error(describeMachine(stores.folder()))
  const beganAt = performance.now()
  for (const scenario of wanted) {
    const startedAt = performance.now()
    try {
      const results = compare(scenario.name, await scenario.run(stores, usualPace))
      all.push(...results)
      console.log(json ? results.map(jsonLine).join('\n') : table(scenario, results))
    } catch (error) {
      // The others are worth their figures all the same.
      console.error(`${scenario.name} failed:`, error)
      process.exitCode = 1
    }
    console.error(`${scenario.name}: ${seconds(startedAt)} s`)
  }
  const verdict = `${verdictLine(all)}. ${seconds(beganAt)} s in all.`
  if (json) console.error(verdict)
  else console.log(`\n${verdict}`)
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(0)
}

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await run()
