// A thread beside a process that is to end by itself. It sees what that process cannot tell any more: that it goes on, and
// with what. It does not keep the process alive.
import { appendFileSync, writeSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { type Line, now } from './history/records.ts'

/** What is done about a process that does not end. */
export type EndWatchOptions =
  /** Says so on standard error and kills it. */
  | { readonly withinMs: number; readonly kills: true }
  /** Writes it into its history, and leaves the rest to whoever started it. */
  | { readonly withinMs: number; readonly journal: string; readonly by: string }

/** From here on nothing is left to do: a process that is still there after so long is looked into. */
export function watchEnd(options: EndWatchOptions): void {
  const resources = process.getActiveResourcesInfo()
  const program = fileURLToPath(import.meta.url)
  const thread = new Worker(program, { workerData: { ...options, resources }, execArgv: [] })
  thread.on('error', (error) => console.error(`The watch over the end of this process failed: ${error}`))
  thread.unref()
}

async function watch(options: EndWatchOptions & { readonly resources: readonly string[] }): Promise<void> {
  // An answer of the inspector that is awaited keeps no thread alive.
  setInterval(() => {}, 60_000)
  await new Promise((resolve) => setTimeout(resolve, options.withinMs))
  const busy = await busiest()
  if ('journal' in options) {
    const { journal, by, resources } = options
    const line: Line = { at: now(), by, is: 'lingers', resources, busy }
    appendFileSync(journal, `${JSON.stringify(line)}\n`)
    process.exit()
  }
  const held = [...new Set(options.resources)].join(', ')
  const seconds = options.withinMs / 1_000
  writeSync(
    2,
    `This process does not end by itself, ${seconds} s after its result. It had ${held}; it is ${busy}.\n`,
  )
  process.kill(process.pid, 'SIGKILL')
}

/** What the main thread does, if anything. */
async function busiest(): Promise<string> {
  const session = new Session()
  session.connectToMainThread()
  const post = (method: string): Promise<Profiler.StopReturnType> =>
    new Promise((resolve, reject) =>
      session.post(method, (error, answer) =>
        error === null ? resolve(answer as Profiler.StopReturnType) : reject(error),
      ),
    )
  await post('Profiler.enable')
  await post('Profiler.start')
  await new Promise((resolve) => setTimeout(resolve, 500))
  const { profile } = await post('Profiler.stop')
  session.disconnect()
  const isIdle = ({ functionName }: { functionName: string }): boolean =>
    /^\((idle|root)\)$/.test(functionName)
  const active = profile.nodes.filter(({ callFrame }) => !isIdle(callFrame))
  const [top] = active.toSorted((a, b) => (b.hitCount ?? 0) - (a.hitCount ?? 0))
  const total = profile.nodes.reduce((sum, { hitCount = 0 }) => sum + hitCount, 0)
  if (top?.hitCount === undefined || top.hitCount < total / 20) return 'idle'
  const { functionName, url, lineNumber } = top.callFrame
  return `busy in ${functionName || 'a function'} (${url}:${lineNumber + 1})`
}

if (!isMainThread) await watch(workerData as Parameters<typeof watch>[0])
