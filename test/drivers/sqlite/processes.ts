// Starts real child processes that use the driver.
import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { Order, Report } from './worker-process.ts'

/** Bundles the worker once for a test file: Node.js 20 runs no TypeScript. Answers how to start one. */
export function useWorkers(): () => Promise<WorkerProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-worker-'))
  beforeAll(async () => {
    await build({
      configFile: false,
      logLevel: 'silent',
      build: {
        ssr: fileURLToPath(new URL('worker-process.ts', import.meta.url)),
        outDir: directory,
        rolldownOptions: { output: { entryFileNames: 'worker.mjs' } },
      },
    })
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  return () => WorkerProcess.start(join(directory, 'worker.mjs'))
}

export class WorkerProcess {
  readonly #child: ChildProcess

  static async start(file: string): Promise<WorkerProcess> {
    const child = fork(file, { execArgv: [] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    const worker = new WorkerProcess(child)
    await worker.#next('ready')
    return worker
  }

  constructor(child: ChildProcess) {
    this.#child = child
  }

  /** Sends an order and answers its report. */
  async obey<Kind extends Report['kind']>(
    order: Order,
    kind: Kind,
  ): Promise<Extract<Report, { kind: Kind }>> {
    const report = this.#next(kind)
    this.#child.send(order)
    return report
  }

  /** `kill -9`, and waits until the process is gone. */
  async kill(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
  }

  async #next<Kind extends Report['kind']>(kind: Kind): Promise<Extract<Report, { kind: Kind }>> {
    const ended = new AbortController()
    const exit = once(this.#child, 'exit', { signal: ended.signal }).then(([code]) => {
      throw new Error(`The worker process ended (${code}) before it was ${kind}.`)
    })
    exit.catch(() => undefined)
    const [report] = (await Promise.race([once(this.#child, 'message'), exit])) as [Report]
    ended.abort()
    if (report.kind !== kind)
      throw new Error(`The worker process reported ${report.kind} instead of ${kind}.`)
    return report as Extract<Report, { kind: Kind }>
  }
}
