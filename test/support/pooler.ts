import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { Server } from '../../scripts/servers/server.mjs'

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const pgbouncer = folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))

/** Nobody has to install it: what needs it is left out where it is missing. */
export const hasPooler: boolean = pgbouncer !== undefined

/** pgbouncer refuses to run as root. */
function unprivileged() {
  if (process.getuid?.() !== 0) return undefined
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, 'nobody']).stdout.toString()))
  return { uid: uid!, gid: gid! }
}

/** A pgbouncer in front of a PostgreSQL server, that shares three connections out by transaction. */
export async function startPooler(url: URL): Promise<Server> {
  const settings = (folder: string, port: number) => `[databases]
* = host=${url.hostname} port=${url.port}
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
  const owner = unprivileged()
  const server = new Server({
    name: 'pgbouncer',
    ...(owner && { owner }),
    stopSignal: 'SIGINT',
    command: (folder, port) => {
      writeFileSync(join(folder, 'users'), '"postgres" ""\n', { mode: 0o644 })
      writeFileSync(join(folder, 'settings'), settings(folder, port), { mode: 0o644 })
      return [pgbouncer!, join(folder, 'settings')]
    },
    probe: async (_folder, port) => {
      const client = new pg.Client(`postgres://postgres@127.0.0.1:${port}${url.pathname}`)
      await client.connect()
      await client.end()
    },
    url: (port) => `postgres://postgres@127.0.0.1:${port}${url.pathname}`,
  })
  await server.start()
  return server
}
