import { createConnection } from 'node:net'

/**
 * Sends one statement by the simple protocol of PostgreSQL and resolves with the first column as text. Just
 * enough of the protocol to ask a server of our own, without a client library.
 * @param {{ port: number, database?: string, sql: string }} request
 * @returns {Promise<string[]>}
 */
export function query({ port, database = 'postgres', sql }) {
  return new Promise((resolve, reject) => {
    const socket = createConnection(port, '127.0.0.1')
    /** @type {Error} */
    let failure = new Error('PostgreSQL closed the connection')
    /** @type {string[]} */
    const values = []
    let pending = Buffer.alloc(0)
    let isAsked = false
    socket.setTimeout(30_000, () => socket.destroy(new Error('PostgreSQL is silent')))
    socket.once('error', reject)
    socket.once('close', () => reject(failure))
    socket.on('data', (bytes) => {
      pending = Buffer.concat([pending, bytes])
      while (pending.length >= 5 && pending.length > pending.readUInt32BE(1)) {
        const end = pending.readUInt32BE(1) + 1
        const [type, body] = [pending.toString('latin1', 0, 1), pending.subarray(5, end)]
        pending = pending.subarray(end)
        if (type === 'E') failure = new Error(body.toString('utf8').split('\0').join(' '))
        if (type === 'D' && body.readInt32BE(2) > 0)
          values.push(body.toString('utf8', 6, 6 + body.readInt32BE(2)))
        if (type === 'C') resolve(values)
        if (type === 'Z' && !isAsked) socket.write(message('Q', `${sql}\0`))
        else if (type === 'Z') socket.end(message('X', ''))
        isAsked ||= type === 'Z'
      }
    })
    const version = '\0\x03\0\0'
    socket.write(message('', `${version}user\0postgres\0database\0${database}\0\0`))
  })
}

/**
 * @param {string} type
 * @param {string} text
 */
function message(type, text) {
  const body = Buffer.from(text, 'utf8')
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type, 'latin1'), length, body])
}
