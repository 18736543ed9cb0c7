import { describe } from 'vitest'
import { createClient } from 'node-redis5'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { redisSubject } from './subjects/redis.ts'

describe.skipIf(!(await isAvailable('redis')))('node-redis 5', () => {
  contractFile(
    redisSubject('node-redis 5', async (url) => {
      const client = createClient({ url })
      client.on('error', () => {})
      await client.connect()
      return {
        client,
        send: (command, ...args) => client.sendCommand([command, ...args]),
        close: async () => {
          if (client.isOpen) client.destroy()
        },
      }
    }),
  )
})
