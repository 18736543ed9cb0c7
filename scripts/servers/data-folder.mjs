// Throw-away data folders, named after the process that made them, so that the next one can clear up
// behind a process that was killed.
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAlive } from '../is-alive.mjs'

const prefix = 'leasehold-server-'
// A server that drops root's rights has to be able to reach its folder; root's TMPDIR may be closed to it.
const base = process.getuid?.() === 0 ? '/tmp' : tmpdir()

/**
 * @param {{ uid: number, gid: number }} [owner]
 * @returns {string}
 */
export function createDataFolder(owner) {
  removeAbandoned()
  const folder = mkdtempSync(join(base, `${prefix}${process.pid}-`))
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  return folder
}

/** @param {string} folder */
export function removeDataFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
}

function removeAbandoned() {
  for (const name of readdirSync(base)) {
    const owner = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN
    if (Number.isNaN(owner) || isAlive(owner)) continue
    try {
      removeDataFolder(join(base, name))
    } catch {
      // Another run is clearing the same folder, or its server is still shutting down: the next one gets it.
    }
  }
}
