import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from './postgres-wire.mjs'
import { programFolder } from './programs.mjs'
import { Server } from './server.mjs'
import { unprivilegedUser } from './unprivileged-user.mjs'

/**
 * @typedef {object} PgbouncerOptions
 * @property {Record<string, string>} [config] settings as in pgbouncer.ini, e.g. `{ default_pool_size: '20' }`
 */

/**
 * Starts a pgbouncer in front of a PostgreSQL server, for all of its databases, that shares three connections to each
 * out by transaction.
 * @param {string} postgresUrl
 * @param {PgbouncerOptions} [options]
 * @returns {Promise<Server>}
 */
export async function startPgbouncer(postgresUrl, { config } = {}) {
  const program = join(programFolder('pgbouncer'), 'pgbouncer')
  const upstream = new URL(postgresUrl)
  const server = new Server({
    name: 'pgbouncer',
    // It refuses to run as root.
    owner: unprivilegedUser(),
    stopSignal: 'SIGINT',
    command: (folder, port) => {
      writeFileSync(join(folder, 'users'), '"postgres" ""\n', { mode: 0o644 })
      const settings = {
        listen_addr: '127.0.0.1',
        listen_port: String(port),
        unix_socket_dir: '',
        auth_type: 'trust',
        auth_file: join(folder, 'users'),
        pool_mode: 'transaction',
        default_pool_size: '3',
        max_client_conn: '200',
        ...config,
      }
      const lines = [
        '[databases]',
        `* = host=${upstream.hostname} port=${upstream.port}`,
        '[pgbouncer]',
        ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
      ]
      writeFileSync(join(folder, 'settings'), `${lines.join('\n')}\n`, { mode: 0o644 })
      return [program, join(folder, 'settings')]
    },
    probe: async (_folder, port) => {
      await query({ port, sql: 'select 1' })
    },
    url: (port) => `postgres://postgres@127.0.0.1:${port}${upstream.pathname}`,
  })
  await server.start()
  return server
}
