import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { query } from './postgres-wire.mjs'
import { programFolder } from './programs.mjs'
import { Server } from './server.mjs'
import { unprivilegedUser } from './unprivileged-user.mjs'

/**
 * @typedef {object} PostgresOptions
 * @property {Record<string, string>} [environment] of its process, on top of our own
 * @property {Record<string, string>} [config] settings as in postgresql.conf, e.g. `{ max_connections: '20' }`. Durability is the default one.
 * @property {number} [replicaOf] the port through which another of these servers is copied and followed, as a hot standby
 */

const run = promisify(execFile)

/**
 * Starts a PostgreSQL server of one's own and resolves when it answers. Its superuser is `postgres`, without a password.
 * @param {PostgresOptions} [options]
 * @returns {Promise<Server>}
 */
export async function startPostgres(options = {}) {
  const programs = programFolder('postgres')
  const owner = unprivilegedUser()
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    shared_buffers: '32MB',
    max_connections: '200',
    timezone: 'UTC',
    ...options.config,
  }
  const server = new Server({
    environment: options.environment,
    name: 'PostgreSQL',
    owner,
    stopSignal: 'SIGINT',
    prepare: async (folder) => {
      if (options.replicaOf !== undefined) {
        const from = ['-h', '127.0.0.1', '-p', String(options.replicaOf), '-U', 'postgres']
        const copy = ['-D', join(folder, 'data'), '-R', '-X', 'stream', '-c', 'fast', '--no-sync']
        await run(join(programs, 'pg_basebackup'), [...from, ...copy], { cwd: folder, ...owner })
        return
      }
      const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C']
      // Nobody reads this cluster after a power cut: only what the server itself writes later is synced.
      const quick = ['--no-sync', '--no-instructions', '--wal-segsize=1']
      await run(join(programs, 'initdb'), [...args, ...quick], { cwd: folder, ...owner })
    },
    command: (folder, port) => [
      join(programs, 'postgres'),
      '-D',
      join(folder, 'data'),
      '-p',
      String(port),
      ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ],
    probe: async (folder, port) => {
      const [directory] = await query({ port, sql: 'show data_directory' })
      if (directory !== join(folder, 'data')) throw new Error('another PostgreSQL has this port')
    },
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  })
  await server.start()
  return server
}
