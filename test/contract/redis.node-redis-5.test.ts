import { describe } from 'vitest'
import { createClient } from 'node-redis5'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { redisSubject } from './subjects/redis.ts'

describe.skipIf(!(await isAvailable('redis')))('node-redis 5', () => {
  contractFile(
    redisSubject('node-redis 5', async (url, name) => {
      const client = createClient({ url, name })
      client.on('error', () => {})
      await client.connect()
      return {
        client,
        close: async () => {
          if (client.isOpen) client.destroy()
        },
      }
    }),
  )
})
