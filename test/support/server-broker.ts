import { createServer, get } from 'node:http'
import { startPgbouncer } from '../../scripts/servers/pgbouncer.mjs'
import { startPostgres } from '../../scripts/servers/postgres.mjs'
import { ProgramMissingError } from '../../scripts/servers/programs.mjs'
import { startRedis } from '../../scripts/servers/redis.mjs'
import type { Server } from '../../scripts/servers/server.mjs'

/** `pgbouncer` is one in front of the shared PostgreSQL server, for all of its databases. */
export type Store = 'redis' | 'postgres' | 'pgbouncer'

/** `missing` names the program that is not installed, where that is tolerated. */
export type BrokerAnswer = { url: string } | { missing: string } | { error: string }

export interface ServerBroker {
  readonly port: number
  /** Programs that were asked for and are not installed. */
  readonly missing: ReadonlySet<string>
  close(): Promise<void>
}

type StartableServer = Pick<Server, 'url' | 'close'>

/** @param urlOf another of the shared servers, which is started if it has to be */
type Starter = (urlOf: (store: Store) => Promise<string>) => Promise<StartableServer>

const servers: Record<Store, Starter> = {
  redis: () => startRedis(),
  postgres: () => startPostgres(),
  pgbouncer: async (urlOf) => startPgbouncer(await urlOf('postgres')),
}

/** Starts each server when the first test file asks for it, in the process that outlives all test files. */
export async function startBroker(starters = servers): Promise<ServerBroker> {
  const started = new Map<Store, Promise<StartableServer>>()
  const missing = new Set<string>()

  const urlOf = async (store: Store): Promise<string> => {
    if (!started.has(store)) started.set(store, starters[store](urlOf))
    return (await started.get(store)!).url
  }
  const answer = async (store: Store): Promise<BrokerAnswer> => {
    try {
      return { url: await urlOf(store) }
    } catch (error) {
      if (!(error instanceof ProgramMissingError)) return { error: String(error) }
      if (process.env['CI'] === 'true')
        return { error: `${error.message} (CI=true, so nothing may be left out)` }
      missing.add(error.message)
      return { missing: error.message }
    }
  }

  const http = createServer((request, response) => {
    void answer(request.url!.slice(1) as Store).then((result) => response.end(JSON.stringify(result)))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const address = http.address()
  if (address === null || typeof address === 'string') throw new Error('no TCP address')

  return {
    port: address.port,
    missing,
    close: async () => {
      http.close()
      const settled = await Promise.allSettled(started.values())
      const running = settled.filter((outcome) => outcome.status === 'fulfilled')
      await Promise.all(running.map((outcome) => outcome.value.close()))
    },
  }
}

/** Asks from a test file's process; leaves no socket behind. */
export function askBroker(port: number, store: Store): Promise<BrokerAnswer> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path: `/${store}`, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (text: string) => (body += text))
      response.on('end', () => resolve(JSON.parse(body) as BrokerAnswer))
    })
    request.on('error', reject)
  })
}
