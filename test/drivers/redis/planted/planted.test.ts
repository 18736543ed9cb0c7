import { afterAll, beforeAll, describe } from 'vitest'
import { testPlanted } from '../../../support/planting.ts'
import { startRedis, type TestServer } from '../../../support/servers.ts'
import { isAvailable } from '../../../support/stores.ts'
import { bugs } from './bugs.ts'
import { stopCluster } from './checks.ts'

describe.skipIf(!(await isAvailable('redis')))('the Redis driver', () => {
  let server: TestServer
  beforeAll(async () => (server = await startRedis()))
  afterAll(async () => {
    await server.close()
    await stopCluster()
  })

  testPlanted({
    bugs,
    load: () => import('../../../../src/drivers/redis/index.ts'),
    trial: ({ redisDriver }) => ({ redisDriver, server }),
  })
})
