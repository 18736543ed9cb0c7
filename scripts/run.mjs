import { spawn } from 'node:child_process'
import { root } from './root.mjs'

/**
 * Runs a Node.js program at the root of the repository, its output on our stderr, and resolves with its exit code.
 * Our stdout stays clean, because the last line of the demo's is read by programs.
 * @param {readonly string[]} args
 * @returns {Promise<number>}
 */
export function runNode(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 2, 2] })
    const end = () => child.kill()
    process.once('exit', end)
    child.once('error', reject)
    child.once('exit', (code) => {
      process.off('exit', end)
      resolve(code ?? 1)
    })
  })
}

/**
 * Ends the script with a message for the person who started it, without a stack trace.
 * @param {string} message
 * @returns {never}
 */
export function fail(message) {
  console.error(`\n${message}`)
  process.exit(1)
}
