import type { redisDriver } from 'leasehold/redis'
import { Redis } from 'ioredis'
import { rawRedis } from '../../../contract/subjects/redis.ts'
import { type Check, contractCheck } from '../../../support/planting.ts'
import type { TestServer } from '../../../support/servers.ts'

/** The driver under trial, as it is or with a bug in it, and a server for it. */
export interface Trial {
  readonly redisDriver: typeof redisDriver
  readonly server: TestServer
}

/** A behaviour of the contract suite, on two connections. */
export const contract: (name: string) => Check<Trial> = contractCheck<Trial>(
  { push: false, clock: 'server', keepsFreeRecords: false, raw: ['readFence'], unreachable: false },
  async ({ redisDriver, server }) => {
    const clients = [1, 2, 3].map(() => new Redis(server.url)) as [Redis, Redis, Redis]
    const [first, second, operator] = clients
    return {
      first: redisDriver(first, { push: false }),
      second: redisDriver(second, { push: false }),
      raw: rawRedis(operator),
      close: async () => {
        for (const client of clients) client.disconnect()
      },
    }
  },
)
