import { randomInt } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folder = join(tmpdir(), 'leasehold-ports')
/** @type {Set<string>} */
const reserved = new Set()

process.once('exit', () => {
  for (const path of reserved) rmSync(path, { force: true })
})

/**
 * A loopback port that nothing listens on, and that stays this process's: a server may be stopped, or a proxy refuse
 * connections, and come back on it. In between its clients would talk to whoever took it. Below the range that the
 * system gives to outgoing connections.
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (reservePort(port) && (await isFree(port))) return port
  }
}

/**
 * Keeps a port from all other processes that ask here, for as long as this one lives. False if it is taken.
 * @param {number} port
 * @returns {boolean}
 */
export function reservePort(port) {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, String(port))
  for (let tries = 0; tries < 2; tries++) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      reserved.add(path)
      return true
    } catch {
      if (isAlive(ownerOf(path))) return false
      rmSync(path, { force: true })
    }
  }
  return false
}

/** @param {string} path */
function ownerOf(path) {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch {
    return 0
  }
}

/** @param {number} pid */
function isAlive(pid) {
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
