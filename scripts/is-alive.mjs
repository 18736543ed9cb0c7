import { readFileSync } from 'node:fs'

/**
 * Whether a process runs. A zombie does not, although signal 0 reaches it.
 * @param {number} pid
 */
export function isAlive(pid) {
  try {
    if (process.platform !== 'linux') return process.kill(pid, 0)
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return status.charAt(status.lastIndexOf(')') + 2) !== 'Z'
  } catch {
    return false
  }
}
