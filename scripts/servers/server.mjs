// One server process: on a free loopback port, with throw-away data, ready when it has answered, and gone
// with the process that started it, even if that one is killed with SIGKILL.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDataFolder, removeDataFolder } from './data-folder.mjs'
import { freePort } from './free-port.mjs'

/**
 * What differs from one kind of server to the other.
 * @typedef {object} ServerKind
 * @property {string} name
 * @property {{ uid: number, gid: number } | undefined} [owner] whom it runs as, when not as ourselves
 * @property {Record<string, string> | undefined} [environment] on top of our own
 * @property {NodeJS.Signals} stopSignal ends it in good order without waiting for its clients
 * @property {(folder: string) => Promise<void>} [prepare] called once, on the empty data folder
 * @property {(folder: string, port: number) => [program: string, ...args: string[]]} command
 * @property {(folder: string, port: number, pid: number) => Promise<void>} probe rejects until this very process answers
 * @property {(port: number) => string} url
 */

const readyWithinMs = 30_000
const startAttempts = 5

/** @type {Set<Server>} */
const running = new Set()
process.on('exit', () => {
  for (const server of running) server.destroy()
})

export class Server {
  #kind
  #folder
  #port = 0
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child

  /** @param {ServerKind} kind */
  constructor(kind) {
    this.#kind = kind
    this.#folder = createDataFolder(kind.owner)
    running.add(this)
  }

  get port() {
    return this.#port
  }

  get url() {
    return this.#kind.url(this.#port)
  }

  get host() {
    return '127.0.0.1'
  }

  /** The process id, while it runs. @returns {number | undefined} */
  get pid() {
    return this.#child?.pid
  }

  get dataFolder() {
    return this.#folder
  }

  /** What the server has written so far, for the message of a failed test. */
  get log() {
    return readFileSync(join(this.#folder, 'log'), 'utf8')
  }

  /** Starts it and resolves when it answers; on the same port and data if it ran before. */
  async start() {
    if (this.#child !== undefined) return
    if (this.#port === 0) await this.#kind.prepare?.(this.#folder)
    const fixedPort = this.#port
    for (let attempt = 1; ; attempt++) {
      this.#port = fixedPort || (await freePort())
      if (await this.#launch()) return
      if (attempt === startAttempts) {
        const log = this.log.slice(-1_000)
        this.destroy()
        throw new Error(`${this.#kind.name} did not start:\n${log}`)
      }
      await sleep(100)
    }
  }

  /** Stops it in good order. Data and port are kept for `restart`. */
  async stop() {
    await this.kill(this.#kind.stopSignal)
  }

  /**
   * Sends a signal that ends it and resolves when it is gone. SIGKILL reaches its child processes too.
   * @param {NodeJS.Signals} [signal]
   */
  async kill(signal = 'SIGKILL') {
    const child = this.#child
    if (child === undefined) return
    child.ref()
    const gone = once(child, 'exit')
    this.resume()
    if (signal === 'SIGKILL') {
      signalAll(this.#tree(), 'SIGSTOP')
      signalAll(this.#tree().toReversed(), 'SIGKILL')
    } else {
      child.kill(signal)
    }
    await gone
  }

  /** Stops it if it runs, and starts it again on the same port with the same data. */
  async restart() {
    await this.stop()
    await this.start()
  }

  /** Freezes it: connections stay open and nothing is answered. */
  pause() {
    signalAll(this.#tree(), 'SIGSTOP')
    signalAll(this.#tree(), 'SIGSTOP')
  }

  resume() {
    signalAll(this.#tree().toReversed(), 'SIGCONT')
  }

  /** Ends it and deletes its data. */
  async close() {
    await this.kill()
    this.destroy()
  }

  async [Symbol.asyncDispose]() {
    await this.close()
  }

  /** What `close` does, without waiting; for the last moment of a process. */
  destroy() {
    signalAll(this.#tree().toReversed(), 'SIGKILL')
    running.delete(this)
    removeDataFolder(this.#folder)
  }

  async #launch() {
    const child = this.#spawn()
    this.#child = child
    child.once('exit', () => {
      if (this.#child === child) this.#child = undefined
    })
    child.once('error', () => {
      if (this.#child === child) this.#child = undefined
    })
    const giveUpAt = performance.now() + readyWithinMs
    while (this.#child === child && child.pid !== undefined) {
      try {
        await this.#kind.probe(this.#folder, this.#port, child.pid)
        return true
      } catch (error) {
        if (performance.now() > giveUpAt) {
          await this.kill()
          throw new Error(`${this.#kind.name} does not answer:\n${this.log.slice(-2_000)}`, { cause: error })
        }
        await sleep(5)
      }
    }
    return false
  }

  #spawn() {
    const command = [
      ...diesWithUs(this.#kind.owner, this.#kind.stopSignal),
      ...this.#kind.command(this.#folder, this.#port),
    ]
    const [program = '', ...args] = command
    const log = openSync(join(this.#folder, 'log'), 'a')
    try {
      const env = { ...process.env, ...this.#kind.environment }
      const child = spawn(program, args, { cwd: this.#folder, stdio: ['ignore', log, log], env })
      child.unref()
      return child
    } finally {
      closeSync(log)
    }
  }

  /** The server and the processes it forked, itself first. @returns {number[]} */
  #tree() {
    const pid = this.#child?.pid
    return pid === undefined ? [] : [pid, ...childrenOf(pid)]
  }
}

/**
 * The prefix that makes the kernel end a child when its parent is gone, and that drops root's rights.
 * @param {{ uid: number, gid: number } | undefined} owner
 * @param {NodeJS.Signals} signal
 * @returns {string[]}
 */
function diesWithUs(owner, signal) {
  if (process.platform !== 'linux') return []
  const identity = owner && [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups']
  return ['setpriv', ...(identity ?? []), '--pdeathsig', signal.replace('SIG', '')]
}

/**
 * @param {number} parent
 * @returns {number[]}
 */
function childrenOf(parent) {
  if (process.platform !== 'linux') return []
  try {
    const listed = readFileSync(`/proc/${parent}/task/${parent}/children`, 'latin1')
    return listed.split(' ').filter(Boolean).map(Number)
  } catch {
    return scannedChildrenOf(parent)
  }
}

/** For kernels built without the list of children. @param {number} parent */
function scannedChildrenOf(parent) {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  return pids.filter((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/stat`, 'latin1')
      return Number(status.slice(status.lastIndexOf(')') + 4).split(' ')[0]) === parent
    } catch {
      return false
    }
  })
}

/**
 * @param {number[]} pids
 * @param {NodeJS.Signals} signal
 */
function signalAll(pids, signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It ended by itself in the meantime.
    }
  }
}
