import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { query } from './postgres-wire.mjs'
import { programFolder } from './programs.mjs'
import { Server } from './server.mjs'
import { unprivilegedUser } from './unprivileged-user.mjs'

/**
 * Starts a pgbouncer in front of a PostgreSQL server, for all of its databases, that shares three connections to each
 * out by transaction.
 * @param {string} postgresUrl
 * @returns {Promise<Server>}
 */
export async function startPgbouncer(postgresUrl) {
  const program = join(programFolder('pgbouncer'), 'pgbouncer')
  const upstream = new URL(postgresUrl)
  const server = new Server({
    name: 'pgbouncer',
    // It refuses to run as root.
    owner: unprivilegedUser(),
    stopSignal: 'SIGINT',
    command: (folder, port) => {
      writeFileSync(join(folder, 'users'), '"postgres" ""\n', { mode: 0o644 })
      writeFileSync(join(folder, 'settings'), settings(upstream, folder, port), { mode: 0o644 })
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

/**
 * @param {URL} upstream
 * @param {string} folder
 * @param {number} port
 */
function settings({ hostname, port: upstreamPort }, folder, port) {
  return `[databases]
* = host=${hostname} port=${upstreamPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users')}
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
`
}
