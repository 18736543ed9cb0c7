import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { root } from '../../scripts/root.mjs'

/** A process of an example. */
export interface Example {
  /** What it has printed so far. */
  readonly lines: readonly string[]
  /** Resolves with the first line that matches, also one that was printed before. */
  line(pattern: RegExp): Promise<string>
  /** Sends SIGTERM; answers the exit code when it has ended by itself. */
  terminate(): Promise<number | null>
  /** Ends it from one moment to the next. */
  kill(): void
}

/** Starts an example as a user would: by its file, with nothing but an environment. */
export function startExample(name: string, environment: Readonly<Record<string, string>>): Example {
  const path = join(root, 'dist-programs', 'examples', name, 'service.js')
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`)
  const child: ChildProcess = spawn(process.execPath, [path], {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines: string[] = []
  const waiting = new Set<() => void>()
  const ended = once(child, 'exit')
  if (child.stdout !== null) {
    createInterface(child.stdout).on('line', (line) => {
      lines.push(line)
      for (const look of waiting) look()
    })
  }
  return {
    lines,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line))
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
        void ended.then(() => reject(new Error(`It ended and never said ${String(pattern)}.`)))
      }),
    async terminate() {
      child.kill('SIGTERM')
      const [code] = (await ended) as [number | null]
      return code
    },
    kill: () => void child.kill('SIGKILL'),
  }
}
