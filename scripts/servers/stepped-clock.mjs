import { execFile } from 'node:child_process'
import { chmodSync, closeSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createDataFolder, removeDataFolder } from './data-folder.mjs'
import { programFolder } from './programs.mjs'
import { steppedClockSource } from './stepped-clock.c.mjs'

/**
 * A wall clock for servers that can be stepped while they run.
 * @typedef {object} SteppedClock
 * @property {Record<string, string>} environment for the servers that go by it
 * @property {(ms: number) => void} set how far it is ahead of the host's clock from now on; negative: behind
 * @property {() => void} close once the servers have ended
 */

/**
 * Compiles the library that gives a server this clock; it begins as the host's. Works with Redis and PostgreSQL on Linux.
 * @returns {Promise<SteppedClock>}
 */
export async function startSteppedClock() {
  const gcc = join(programFolder('gcc'), 'gcc')
  const folder = createDataFolder()
  chmodSync(folder, 0o755)
  const source = join(folder, 'stepped-clock.c')
  writeFileSync(source, steppedClockSource)
  const library = join(folder, 'stepped-clock.so')
  await promisify(execFile)(gcc, ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
  const path = join(folder, 'offset')
  const file = openSync(path, 'w', 0o644)
  const set = (/** @type {number} */ ms) => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(Math.round(ms * 1_000)))
    writeSync(file, bytes, 0, 8, 0)
  }
  set(0)
  return {
    environment: { LD_PRELOAD: library, STEPPED_CLOCK: path },
    set,
    close() {
      closeSync(file)
      removeDataFolder(folder)
    },
  }
}
