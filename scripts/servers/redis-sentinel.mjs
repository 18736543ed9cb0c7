import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { programFolder } from './programs.mjs'
import { Server } from './server.mjs'

/**
 * @typedef {object} SentinelOptions
 * @property {string} name what the watched primary is called
 * @property {number} port where it is
 * @property {number} quorum how many Sentinels have to find it dead
 * @property {number} downAfterMs after how long without an answer it is
 */

/**
 * Starts a Sentinel of one's own that watches a primary, and resolves when it answers.
 * @param {SentinelOptions} options
 * @returns {Promise<Server>}
 */
export async function startSentinel({ name, port: watched, quorum, downAfterMs }) {
  const program = join(programFolder('redis-server'), 'redis-server')
  const server = new Server({
    name: 'Redis Sentinel',
    stopSignal: 'SIGTERM',
    prepare: async (folder) => {
      const settings = [
        `sentinel monitor ${name} 127.0.0.1 ${watched} ${quorum}`,
        `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
        // How long it tolerates a replica that follows its primary by another address; and after a vote without a
        // winner it waits for twice as long.
        `sentinel failover-timeout ${name} 15000`,
      ]
      writeFileSync(join(folder, 'sentinel.conf'), `${settings.join('\n')}\n`)
    },
    command: (folder, port) => [
      program,
      join(folder, 'sentinel.conf'),
      '--sentinel',
      '--bind',
      '127.0.0.1',
      '--port',
      String(port),
      '--dir',
      folder,
    ],
    probe: (_folder, port, pid) => probe(port, pid),
    url: (port) => `redis://127.0.0.1:${port}`,
  })
  await server.start()
  return server
}

/**
 * @param {number} port
 * @param {number} pid
 * @returns {Promise<void>}
 */
function probe(port, pid) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1').setTimeout(2_000, () => socket.destroy(new Error('the Sentinel is silent')))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error(`the Sentinel answered: ${answer}`)))
    socket.on('data', (text) => {
      answer += text
      if (!answer.includes('process_id:')) return
      if (answer.includes(`process_id:${pid}\r\n`)) resolve()
      socket.end()
    })
    socket.write('INFO server\r\n')
  })
}
