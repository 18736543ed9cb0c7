import { createServer, get } from 'node:http'
import { startPostgres } from '../../scripts/servers/postgres.mjs'
import { ProgramMissingError } from '../../scripts/servers/programs.mjs'
import { startRedis } from '../../scripts/servers/redis.mjs'
import type { Server } from '../../scripts/servers/server.mjs'

export type Store = 'redis' | 'postgres'

/** `missing` names the program that is not installed, where that is tolerated. */
export type BrokerAnswer = { url: string } | { missing: string } | { error: string }

export interface ServerBroker {
  readonly port: number
  /** Programs that were asked for and are not installed. */
  readonly missing: ReadonlySet<string>
  close(): Promise<void>
}

type StartableServer = Pick<Server, 'url' | 'close'>

const servers: Record<Store, () => Promise<StartableServer>> = { redis: startRedis, postgres: startPostgres }

/** Starts each server when the first test file asks for it, in the process that outlives all test files. */
export async function startBroker(starters = servers): Promise<ServerBroker> {
  const started = new Map<Store, Promise<StartableServer>>()
  const missing = new Set<string>()

  const answer = async (store: Store): Promise<BrokerAnswer> => {
    try {
      if (!started.has(store)) started.set(store, starters[store]())
      return { url: (await started.get(store)!).url }
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
