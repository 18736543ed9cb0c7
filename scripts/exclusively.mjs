// The set-up is exclusive on one machine: two commands started together must not install into one folder.
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from './is-alive.mjs'

/**
 * Runs `action` while no other process runs one with the same `folder`.
 * @param {string} folder
 * @param {() => Promise<void>} action
 */
export async function exclusively(folder, action) {
  mkdirSync(folder, { recursive: true })
  const lock = join(folder, 'lock')
  await take(lock)
  const release = () => rmSync(lock, { force: true })
  process.once('exit', release)
  try {
    await action()
  } finally {
    process.off('exit', release)
    release()
  }
}

/** @param {string} lock */
async function take(lock) {
  const mine = `${lock}-${process.pid}`
  writeFileSync(mine, String(process.pid))
  try {
    for (let isTold = false; !isLinked(mine, lock); await sleep(200)) {
      const owner = ownerOf(lock)
      if (owner === undefined) continue
      if (!isAlive(owner)) rmSync(lock, { force: true })
      else if (!isTold) console.error(`Waiting for the set-up that process ${owner} is doing`)
      isTold = true
    }
  } finally {
    rmSync(mine, { force: true })
  }
}

/**
 * A link appears with its content or not at all, so that nobody reads a lock without an owner.
 * @param {string} from
 * @param {string} to
 */
function isLinked(from, to) {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  }
}

/** @param {string} lock */
function ownerOf(lock) {
  try {
    return Number(readFileSync(lock, 'utf8'))
  } catch {
    return undefined
  }
}
