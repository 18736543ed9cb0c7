import { once } from 'node:events'
import { describe } from 'vitest'
import { Redis } from 'ioredis'
import { redisSubject } from '../contract/subjects/redis.ts'
import { isAvailable } from '../support/stores.ts'
import { modelFile } from './model-file.ts'

describe.skipIf(!(await isAvailable('redis')))('redis', () => {
  const subject = redisSubject('ioredis', async (url, connectionName) => {
    const client = new Redis(url, { connectionName })
    client.on('error', () => {})
    await once(client, 'ready')
    return { client, close: async () => client.disconnect() }
  })
  modelFile(subject, { histories: 20, moves: 40 })
})
