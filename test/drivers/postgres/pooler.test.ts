import { existsSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresDriver } from 'leasehold/postgres'
import { Server } from '../../../scripts/servers/server.mjs'
import { freshNamespace, isAvailable } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase } from './database.ts'

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const pgbouncer = folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))

/** pgbouncer refuses to run as root. */
function unprivileged() {
  if (process.getuid?.() !== 0) return undefined
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, 'nobody']).stdout.toString()))
  return { uid: uid!, gid: gid! }
}

async function startPooler(url: URL): Promise<Server> {
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

describe.skipIf(pgbouncer === undefined || !(await isAvailable('postgres')))(
  'behind a pooler in transaction mode',
  () => {
    let database: Database
    let pooler: Server
    beforeAll(async () => {
      database = await freshDatabase()
      pooler = await startPooler(new URL(database.url))
    })
    afterAll(async () => {
      await database[Symbol.asyncDispose]()
      await pooler.close()
    })

    const pool = () => {
      const pooled = new pg.Pool({ connectionString: pooler.url, max: 10 })
      database.also(() => pooled.end())
      return pooled
    }

    it.each(['pg', 'postgres.js'])(
      'leases work, with more clients than connections: %s (M31)',
      async (kind) => {
        const sql = postgres(pooler.url, { max: 10, onnotice: () => {} })
        database.also(() => sql.end({ timeout: 1 }))
        const { locks } = postgresDriver(kind === 'pg' ? pool() : sql).open(freshNamespace())
        const leases = Array.from({ length: 100 }, (_, index) => asking(`key-${index}`))
        for (const verb of ['acquire', 'refresh', 'release'] as const) {
          const answers = await Promise.all(leases.map((lease) => locks[verb]([lease], call)))
          const expected = { acquire: 'granted', refresh: 'held', release: 'released' }[verb]
          expect(new Set(answers.map(([answer]) => answer!.outcome))).toEqual(new Set([expected]))
        }
      },
    )

    it('push succeeds in subscribing and hears nothing, which a probe finds out', async () => {
      const namespace = freshNamespace()
      const ignore = { onNotice: () => {}, onDeaf: () => {} }
      const [pooled, direct] = [postgresDriver(pool()).open(namespace), database.driver().open(namespace)]
      const [deaf, sound] = [await pooled.listen!(ignore), await direct.listen!(ignore)]
      let isHeard = false
      const probe = deaf.probe().then(
        () => (isHeard = true),
        () => 'ended',
      )
      for (let round = 0; round < 20; round++) await sound.probe()
      expect(isHeard).toBe(false)
      await Promise.all([pooled.close(), direct.close()])
      expect(await probe).toBe('ended')
    })

    it('push works over a connection past the pooler', async () => {
      const session = postgresDriver(pool(), { listen: () => new pg.Client(database.url) }).open(
        freshNamespace(),
      )
      const channel = await session.listen!({ onNotice: () => {}, onDeaf: () => {} })
      await channel.probe()
      await session.close()
    })
  },
)
