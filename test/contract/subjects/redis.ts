import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import type { ContractSubject, RawStore } from 'leasehold/testing'
import { redisDriver, type RedisClient } from 'leasehold/redis'
import { redisUrl } from '../../support/stores.ts'

/** A connected client as an application would have made it. */
export interface OpenClient {
  readonly client: RedisClient
  close(): Promise<unknown>
}

export function redisSubject(
  name: string,
  open: (url: string, connectionName: string) => Promise<OpenClient>,
): ContractSubject {
  return {
    name: `redis / ${name}`,
    expects: {
      push: true,
      clock: 'server',
      keepsFreeRecords: false,
      raw: ['forgetKey', 'forgetTask', 'readFence', 'writeFence', 'countKeys', 'plantForeign', 'disturb'],
      unreachable: true,
    },
    open: async () => {
      const url = await redisUrl()
      const connectionName = `contract-${randomBytes(6).toString('hex')}`
      const [first, second, closed] = await Promise.all([
        open(url, connectionName),
        open(url, connectionName),
        open(url, connectionName),
      ])
      await closed.close()
      const operator = new Redis(url)
      operator.on('error', () => {})
      await once(operator, 'ready')
      const own = await connectionsCalled(operator, connectionName)
      if (own.length < 2) throw new Error(`There should be two connections called ${connectionName}.`)
      return {
        first: redisDriver(first.client),
        second: redisDriver(second.client),
        unreachable: redisDriver(closed.client),
        raw: { ...rawRedis(operator), disturb: () => disturb(operator, connectionName) },
        close: async () => {
          await Promise.all([first.close(), second.close()])
          operator.disconnect()
        },
      }
    },
  }
}

/** Drops the cached scripts, and cuts all connections of the drivers on trial, but of no other test. */
async function disturb(operator: Redis, connectionName: string): Promise<void> {
  await operator.script('FLUSH')
  for (const id of await connectionsCalled(operator, connectionName)) {
    await operator.call('CLIENT', 'KILL', 'ID', id)
  }
}

async function connectionsCalled(operator: Redis, connectionName: string): Promise<string[]> {
  const list = (await operator.client('LIST')) as string
  return list
    .split('\n')
    .filter((line) => line.includes(` name=${connectionName} `))
    .flatMap((line) => /^id=(\d+) /.exec(line)?.[1] ?? [])
}

/** The form of the records is written down here once more, so that the driver's own code is not taken at its word. */
export function rawRedis(operator: Redis): RawStore {
  const record = (namespace: string, kind: 'k' | 't', name: string): string =>
    `{leasehold:${namespace}}:${kind}:${name}`
  return {
    forgetKey: async (namespace, key) => {
      await operator.del(record(namespace, 'k', key))
    },
    forgetTask: async (namespace, task) => {
      await operator.del(record(namespace, 't', task))
    },
    readFence: async (namespace, key) => {
      const text = await operator.get(record(namespace, 'k', key))
      return text?.split(' ')[1] ?? null
    },
    writeFence: async (namespace, key, fence) => {
      const name = record(namespace, 'k', key)
      const [version, , ...rest] = ((await operator.get(name)) ?? '').split(' ')
      await operator.set(name, [version, String(fence), ...rest].join(' '), 'KEEPTTL')
    },
    countKeys: async (namespace) => {
      let count = 0
      for await (const names of operator.scanStream({ match: record(namespace, 'k', '*'), count: 1_000 })) {
        count += (names as string[]).length
      }
      return count
    },
    plantForeign: async (namespace, key) => {
      await operator.del(record(namespace, 'k', key))
      await operator.rpush(record(namespace, 'k', key), 'no', 'lease')
    },
  }
}
