// Three processes, one store, one cron a second: each slot runs once, whatever happens to the pods.
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type DemoArguments, parseDemoArguments, usage } from './arguments.ts'
import { Board } from './board.ts'
import { Fleet, type Pod } from './fleet.ts'
import { isLong, lateIndex, type PodMessage } from './messages.ts'
import { type Summary, summarize } from './summary.ts'

async function main(args: DemoArguments): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const journal = join(folder, 'journal.jsonl')
  writeFileSync(journal, '')
  const url = args.url ?? `sqlite:${join(folder, 'locks.db')}`
  const namespace = `demo-${randomUUID().slice(0, 8)}`
  const print = (line: string): void => void (args.json || console.log(line))
  const board = new Board(print)
  const disturbances = plannedDisturbances(args.seconds)

  const fleet = new Fleet({
    url,
    namespace,
    journal,
    onMessage(pod, message) {
      show(board, pod, message)
      const inMidRun = message.kind === 'started' && message.attempt === 1 && isLong(message.slot)
      if (inMidRun && pod.place !== lateIndex) {
        void disturbances.next()?.({ fleet, board, runner: pod, slot: message.slot })
      }
    },
  })

  print(
    `Three pods run the same cron, '* * * * * *', on ${args.url === null ? 'an SQLite file' : 'the store you gave'}.`,
  )
  const pods = await Promise.all([fleet.start(0), fleet.start(1), fleet.start(2)])
  board.header(pods.map(({ name }) => name))

  const from = Math.ceil(Date.now() / 1_000) * 1_000
  const to = from + (args.seconds - 1) * 1_000
  for (let slot = from; slot <= to; slot += 1_000) {
    await sleep(Math.max(0, slot + settledAfterMs - Date.now()))
    board.printUntil(slot)
  }
  await Promise.all([disturbances.settled(), fleet.stop()])
  board.printUntil(to)
  return await summarize(url, namespace, journal, { from, to })
}

/** By then a slot has run, on the late pod or after a takeover too. */
const settledAfterMs = 1_300

interface Scene {
  readonly fleet: Fleet
  readonly board: Board
  /** The pod that is in the middle of a run, and of which slot. */
  readonly runner: Pod
  readonly slot: number
}

type Disturbance = (scene: Scene) => Promise<void>

/** A kill and a drain, each at the first long slot after its time has come, so that each hits a run in its middle. */
function plannedDisturbances(seconds: number): { next(): Disturbance | undefined; settled(): Promise<void> } {
  const startedAt = performance.now()
  const plan: { readonly afterMs: number; readonly disturb: Disturbance }[] = [
    { afterMs: seconds * 100, disturb: killInMidRun },
    { afterMs: seconds * 400, disturb: drainOne },
  ]
  const running: Promise<void>[] = []
  return {
    next() {
      if (plan[0] === undefined || performance.now() - startedAt < plan[0].afterMs) return undefined
      const { disturb } = plan.shift() as (typeof plan)[number]
      return (scene) => {
        const done = disturb(scene)
        running.push(done)
        return done
      }
    },
    settled: async () => void (await Promise.all(running)),
  }
}

async function killInMidRun({ fleet, board, runner, slot }: Scene): Promise<void> {
  runner.process.kill('SIGKILL')
  board.mark(slot, runner.place, '✗ killed')
  await runner.ended
  board.note(`${runner.name} was killed (SIGKILL) in the middle of its run; another takes the slot over.`)
  const next = await fleet.start(runner.place)
  board.note(`${next.name} started in its place.`)
}

async function drainOne({ fleet, board, runner }: Scene): Promise<void> {
  runner.process.kill('SIGTERM')
  board.note(
    `${runner.name} got SIGTERM in the middle of its run; it finishes the run under its lease, then ends.`,
  )
  const { code, signal } = await runner.ended
  board.note(`${runner.name} has drained (exit ${signal ?? code}).`)
  const next = await fleet.start(runner.place)
  board.note(`${next.name} started in its place.`)
}

function show(board: Board, pod: Pod, message: PodMessage): void {
  if (message.kind === 'started')
    board.mark(message.slot, pod.place, message.attempt > 1 ? '▶ taking over' : '▶ running')
  if (message.kind === 'finished')
    board.mark(message.slot, pod.place, message.attempt > 1 ? '✔ took over' : '✔ ran')
  if (message.kind === 'decided' && message.outcome === 'skipped')
    board.mark(message.slot, pod.place, '– skipped')
  if (message.kind === 'unprotected') board.unprotected(message.slot)
}

function describe(summary: Summary): string {
  const { slots, runs, skipped, duplicates, missed, withoutReason, takeovers, unprotectedRuns } = summary
  return [
    '',
    `${slots} slots: ${runs} ran, ${skipped} skipped, ${missed} missed (${withoutReason} without a reason).`,
    `${duplicates} duplicates, ${takeovers} takeover(s) of a killed pod's slot.`,
    `The same cron unprotected ran ${unprotectedRuns} times, ${(unprotectedRuns / slots).toFixed(1)} times per slot.`,
  ].join('\n')
}

/** Exit code 0 only if each slot ran at most once and none is without a reason. */
async function run(): Promise<void> {
  let args: DemoArguments
  try {
    args = parseDemoArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`)
    process.exitCode = 2
    return
  }
  try {
    const summary = await main(args)
    console.log(args.json ? JSON.stringify(summary) : describe(summary))
    process.exitCode = summary.duplicates === 0 && summary.withoutReason === 0 ? 0 : 1
  } catch (error) {
    console.error(`The demo could not run: ${(error as Error).message}`)
    process.exitCode = 1
  }
}

process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
await run()
