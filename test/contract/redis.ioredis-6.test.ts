import { once } from 'node:events'
import { describe } from 'vitest'
import { Redis } from 'ioredis'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { redisSubject } from './subjects/redis.ts'

describe.skipIf(!(await isAvailable('redis')))('ioredis 6', () => {
  contractFile(
    redisSubject('ioredis 6', async (url, name) => {
      const client = new Redis(url, { connectionName: name })
      client.on('error', () => {})
      await once(client, 'ready')
      return {
        client,
        close: async () => client.disconnect(),
      }
    }),
  )
})
