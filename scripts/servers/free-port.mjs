import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const taken = new Set()

/**
 * A loopback port that nothing listens on. Below the range the system gives to outgoing connections, so
 * that a server can be stopped and come back on the same port.
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (taken.has(port) || !(await isFree(port))) continue
    taken.add(port)
    return port
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
