import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPgbouncer } from '../scripts/servers/pgbouncer.mjs'
import { startPostgres } from '../scripts/servers/postgres.mjs'
import { startRedis } from '../scripts/servers/redis.mjs'
import type { Server } from '../scripts/servers/server.mjs'
import type { ClientName } from '../test/programs/open-locks.ts'
import { type FaultProxy, startFaultProxy } from '../test/support/fault-proxy.ts'
import type { DriverName } from './arguments.ts'

/** A store of this run's own, and a way to it for each place. */
export interface Store {
  readonly driver: Exclude<DriverName, 'pgbouncer'>
  readonly server: Server | null
  /** For `connect`, past all proxies. */
  readonly url: string
  readonly clients: readonly (readonly [ClientName, 'application' | 'connect'])[]
  readonly links: readonly { readonly url: string; readonly proxy: FaultProxy | null }[]
  close(): Promise<void>
}

export async function startStore(driver: DriverName, places: number): Promise<Store> {
  if (driver === 'sqlite') return sqliteFile(places)
  const server =
    driver === 'redis'
      ? await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
      : await startPostgres({ config: { max_connections: '250' } })
  // It asks a server that refused it again after 15 s by default, in which nothing can be had.
  const pooler =
    driver === 'pgbouncer'
      ? await startPgbouncer(server.url, { config: { server_login_retry: '1', default_pool_size: '10' } })
      : null
  const target = pooler?.url ?? server.url
  const proxies = await Promise.all(Array.from({ length: places }, () => startFaultProxy(target)))
  return {
    driver: driver === 'redis' ? 'redis' : 'postgres',
    server,
    url: server.url,
    clients:
      driver === 'redis'
        ? [
            ['ioredis', 'application'],
            ['node-redis', 'application'],
            ['ioredis', 'connect'],
            ['node-redis', 'connect'],
          ]
        : [
            ['pg', 'application'],
            ['postgres.js', 'application'],
            ['pg', 'connect'],
            ['postgres.js', 'connect'],
          ],
    links: proxies.map((proxy) => ({ url: proxy.url, proxy })),
    async close() {
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await pooler?.close()
      await server.close()
    },
  }
}

function sqliteFile(places: number): Store {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-torture-store-'))
  const path = join(folder, 'locks.db')
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', remove)
  return {
    driver: 'sqlite',
    server: null,
    url: `sqlite:${path}`,
    clients: [['sqlite', 'application']],
    links: Array.from({ length: places }, () => ({ url: path, proxy: null })),
    close: async () => remove(),
  }
}
