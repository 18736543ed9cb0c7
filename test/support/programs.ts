import { fork, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../scripts/root.mjs'

/**
 * The compiled form of `test/programs/<name>.ts`: a program that a test starts as a process of its own, to kill, stop
 * or block it. Such programs run on dist and import the package by its name, because Node.js 20 does not run TypeScript.
 */
export function programPath(name: string): string {
  const path = join(root, 'dist-programs', 'test', 'programs', `${name}.js`)
  if (!existsSync(path))
    throw new Error(`${path} is missing: npm test compiles it, npm run build does so alone`)
  return path
}

/** Starts a program with a message channel; the caller ends it. */
export function startProgram(name: string, args: readonly string[] = []): ChildProcess {
  return fork(programPath(name), args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}
