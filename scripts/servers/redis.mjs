import { createConnection } from 'node:net'
import { join } from 'node:path'
import { programFolder } from './programs.mjs'
import { Server } from './server.mjs'

/**
 * @typedef {object} RedisOptions
 * @property {Record<string, string>} [environment] of its process, on top of our own
 * @property {Record<string, string>} [config] settings as in redis.conf, e.g. `{ appendonly: 'yes' }`. By default nothing is persisted: a restart comes back empty.
 */

/**
 * Starts a redis-server of one's own and resolves when it answers.
 * @param {RedisOptions} [options]
 * @returns {Promise<Server>}
 */
export async function startRedis(options = {}) {
  const program = join(programFolder('redis-server'), 'redis-server')
  const settings = { save: '', appendonly: 'no', ...options.config }
  const password = options.config?.['requirepass']
  const server = new Server({
    environment: options.environment,
    name: 'redis-server',
    stopSignal: 'SIGTERM',
    command: (folder, port) => [
      program,
      '--bind',
      '127.0.0.1',
      '--port',
      String(port),
      '--dir',
      folder,
      ...Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]),
    ],
    probe: (_folder, port, pid) => probe(port, pid, password),
    url: (port) =>
      `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
  })
  await server.start()
  return server
}

/**
 * Asks for the process id, because another server may have taken the port first.
 * @param {number} port
 * @param {number} pid
 * @param {string | undefined} password
 * @returns {Promise<void>}
 */
function probe(port, pid, password) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1').setTimeout(2_000, () => socket.destroy(new Error('redis-server is silent')))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`redis-server answered: ${answer}`)))
    socket.on('data', (text) => {
      answer += text
      if (answer.includes(`process_id:${pid}\r\n`) && answer.includes('loading:0')) resolve()
      if (/^-|process_id:|loading:1/m.test(answer)) socket.end()
    })
    if (password !== undefined) socket.write(`AUTH ${password}\r\n`)
    socket.write('INFO server\r\nINFO persistence\r\n')
  })
}
