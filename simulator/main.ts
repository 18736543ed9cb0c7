// Thousands of simulated fleets, each drawn from a seed, each held against every promise. Exit code 0 only if all were kept.
import { parseSimulateArguments, type SimulateArguments, usage } from './arguments.ts'
import { drawPlan } from './draw-plan.ts'
import { traceOf } from './history.ts'
import { runSeeds } from './seed-workers.ts'
import { resultOf, type SeedResult, summarize, type Summary } from './series.ts'
import { shrink } from './shrink.ts'
import { type Trial, tryPlan } from './trial.ts'

const progressEvery = 2_000
/** So many failing runs are cut down and shown. */
const shownFailures = 3

async function simulateSeeds({ seeds, from, threads }: SimulateArguments): Promise<Summary> {
  const results: SeedResult[] = []
  const startedAt = performance.now()
  console.error(`Seeds ${from} to ${from + seeds - 1}`)
  let failed = 0
  await runSeeds({ from, to: from + seeds }, threads, (result) => {
    results.push(result)
    const [first] = result.violations
    if (first !== undefined) {
      failed++
      console.error(`Seed ${result.seed}: ${first.promise} at ${first.at}: ${first.what}`)
    }
    if (results.length % progressEvery === 0) console.error(`${results.length} of ${seeds}, ${failed} failed`)
  })
  const summary = summarize(results, { firstSeed: from, seconds: (performance.now() - startedAt) / 1_000 })
  for (const seed of summary.failedSeeds.slice(0, shownFailures)) {
    if (results.some((result) => result.seed === seed && result.isStuck === true))
      console.error(`Seed ${seed} does not come to an end.`)
    else await showFailure(await tryPlan(drawPlan(seed)))
  }
  return summary
}

/** One run with all that happened in it; if it breaks a promise, cut down as well. */
async function replay(seed: number): Promise<Summary> {
  const startedAt = performance.now()
  const trial = await tryPlan(drawPlan(seed))
  const seconds = (performance.now() - startedAt) / 1_000
  console.error(`Seed ${seed}`)
  for (const line of traceOf(trial.history)) console.error(line)
  if (trial.violations.length > 0) await showFailure(trial)
  return summarize([resultOf(trial)], { firstSeed: seed, seconds })
}

async function showFailure(trial: Trial): Promise<void> {
  const { seed } = trial.plan
  console.error(`\nSeed ${seed} breaks a promise. Replay it: npm run simulate -- --seed ${seed}`)
  for (const { promise, at, what } of trial.violations.slice(0, 5))
    console.error(`  ${promise} at ${at}: ${what}`)
  const { plan, history, violations } = await shrink(trial)
  console.error(
    `Cut down to ${plan.nodes.length} nodes, ${plan.deeds.length} deeds, ${plan.faults.length} faults:`,
  )
  console.error(JSON.stringify(plan))
  for (const line of traceOf(history)) console.error(line)
  for (const { promise, at, what } of violations) console.error(`  ${promise} at ${at}: ${what}`)
}

function describe({
  violations,
  seeds,
  runsPerSecond,
  overlapMs,
  excused,
  failedSeeds,
  met,
}: Summary): string {
  const shares = Object.entries(met).map(
    ([name, share]) => `  ${name.padEnd(20)}${(100 * share).toFixed(1)} %`,
  )
  return [
    `${seeds} runs, ${runsPerSecond} a second: ${violations} violations.`,
    ...(failedSeeds.length > 0 ? [`Failed: ${failedSeeds.join(', ')}`] : []),
    `Named exceptions let two believe for ${overlapMs} ms in all. Broken because of them: ${JSON.stringify(excused)}`,
    'Of all runs, so many met:',
    ...shares,
  ].join('\n')
}

async function run(): Promise<void> {
  let args: SimulateArguments
  try {
    args = parseSimulateArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  Error.stackTraceLimit = 0
  const summary = args.seed === null ? await simulateSeeds(args) : await replay(args.seed)
  console.log(args.json ? JSON.stringify(summary) : describe(summary))
  process.exitCode = summary.violations === 0 ? 0 : 1
}

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await run()
