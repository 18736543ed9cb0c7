import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Redis } from 'ioredis'
import { createClient as createNodeRedis5, RESP_TYPES as TYPES_5 } from 'node-redis5'
import { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } from 'redis'
import { redisDriver, type RedisClient } from 'leasehold/redis'
import { InvalidOptionError } from '../../../src/core/errors.ts'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { startRedis, type TestServer } from '../../support/servers.ts'
import {
  clientKinds,
  openClient,
  openIoRedis5,
  openIoRedis6,
  openNodeRedis6,
  type OpenClient,
} from './clients.ts'
import { useAll } from './every-answer.ts'
import { call, eventually, grant } from './requests.ts'

let server: TestServer
let operator: OpenClient
const closing: (() => unknown)[] = []

beforeAll(async () => {
  server = await startRedis()
  operator = await openClient('ioredis 6', server.url)
})
afterAll(async () => {
  await operator.close()
  await server.close()
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function opens(opening: Promise<OpenClient>): Promise<RedisClient> {
  const { client, close } = await opening
  closing.push(close)
  return client
}

describe('answers are read alike', () => {
  it.each(clientKinds)('from %s', async (kind) => {
    await useAll(await opens(openClient(kind, server.url)), `plain ${kind}`)
  })

  it('over RESP2 and RESP3', async () => {
    await useAll(await opens(openIoRedis6(server.url, { protocol: 2 })), 'ioredis resp2')
    await useAll(await opens(openIoRedis6(server.url, { protocol: 3 })), 'ioredis resp3')
    await useAll(await opens(openNodeRedis6({ url: server.url, RESP: 2 })), 'node-redis resp2')
    await useAll(await opens(openNodeRedis6({ url: server.url, RESP: 3 })), 'node-redis resp3')
  })

  it('from an ioredis that answers numbers as texts, or replies in the ways of RESP3', async () => {
    await useAll(await opens(openIoRedis6(server.url, { stringNumbers: true })), 'stringNumbers 6')
    await useAll(await opens(openIoRedis5(server.url, { stringNumbers: true })), 'stringNumbers 5')
    const client = new Redis(server.url, { replyMapping: 'resp3' })
    closing.push(() => client.disconnect())
    await useAll(client, 'replyMapping')
  })

  it('from a node-redis that answers in buffers and texts', async () => {
    const six = createClient({
      url: server.url,
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } },
    })
    const five = createNodeRedis5({ url: server.url })
    for (const client of [six, five]) {
      client.on('error', () => {})
      await client.connect()
      closing.push(() => client.destroy())
    }
    await useAll(six, 'typeMapping 6')
    await useAll(
      five.withTypeMapping({ [TYPES_5.BLOB_STRING]: Buffer, [TYPES_5.NUMBER]: String }),
      'typeMapping 5',
    )
  })

  it('under a key prefix of the client’s, which keeps applications apart', async () => {
    const prefixed = (keyPrefix: string) => [
      openIoRedis6(server.url, { keyPrefix }),
      openIoRedis5(server.url, { keyPrefix }),
      openNodeRedis6({ url: server.url, keyPrefix }),
    ]
    for (const prefix of ['app*[1]:', '{app}:', 'a{']) {
      for (const [at, opening] of prefixed(prefix).entries()) {
        const client = await opens(opening)
        await useAll(client, `prefix ${at}`)
        expect(
          await operator.send(
            'exists',
            `${prefix}{leasehold:prefix ${at}}:t:task`,
            `{leasehold:prefix ${at}}:t:task`,
          ),
        ).toBe(1)
      }
    }
    const [one, other, none] = await Promise.all([
      opens(openIoRedis6(server.url, { keyPrefix: 'one:' })),
      opens(openIoRedis6(server.url, { keyPrefix: 'other:' })),
      opens(openIoRedis6(server.url)),
    ])
    for (const client of [one, other, none]) await grant(redisDriver(client).open('apart'), 'key')
    for (const client of [one, other, none]) {
      const page = await redisDriver(client)
        .open('apart')
        .locks.scan({ prefix: '', limit: 9, cursor: null }, call)
      expect(page.records.map(({ key }) => key)).toEqual(['key'])
    }
  })
})

describe('the borrowed client', () => {
  it.each(clientKinds)('stays connected when sessions end (%s)', async (kind) => {
    const opened = await openClient(kind, server.url)
    closing.push(() => opened.close())
    const session = redisDriver(opened.client).open('borrowed')
    await grant(session, kind)
    await session.close()
    await session.close()
    expect(await opened.send('ping')).toBe('PONG')
  })

  it('has to be a client that the driver knows how to use', async () => {
    const others: unknown[] = [
      undefined,
      null,
      {},
      'redis://127.0.0.1',
      () => {},
      createClientPool(),
      createCluster({ rootNodes: [] }),
      createSentinel({ name: 'a', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }),
    ]
    for (const other of others) {
      expect(() => redisDriver(other as RedisClient)).toThrow(InvalidOptionError)
    }
    const client = createClient()
    expect(() => redisDriver(client, { subscriber: {} as RedisClient })).toThrow(InvalidOptionError)
    expect(() => redisDriver(client, { retryConnection: {} as RedisClient })).toThrow(InvalidOptionError)
  })

  it('is refused with options out of range, by name', () => {
    const client = createClient()
    const wrong = [
      { prefix: '' },
      { prefix: 'a{b' },
      { prefix: 'a'.repeat(65) },
      { retention: 0 },
      { retention: 999 },
      { retention: 86_400_001 },
      { retention: 1_000.5 },
      { retention: Number.NaN },
      { retention: '60s' as never },
      { push: 1 as never },
    ]
    for (const options of wrong) {
      const [option] = Object.keys(options)
      expect(() => redisDriver(client, options)).toThrow(expect.objectContaining({ option }))
    }
  })
})

describe('the rights of the client’s user', () => {
  it('that the driver’s page lists are enough for everything', async () => {
    const page = readFileSync(new URL('../../../docs/drivers/redis.md', import.meta.url), 'utf8')
    const [, rights = ''] = /\*\*Rights\*\*([^]+?)\n\n/.exec(page) ?? []
    const rules = [...rights.matchAll(/`([+~&][^`]+)`/g)].flatMap(([, list = '']) => list.split(/\s+/))
    expect(rules).toContain('+evalsha')
    const connecting = ['+info', '+client', '+hello', '+ping']
    await operator.send('acl', 'setuser', 'listed', 'on', '>secret', 'resetchannels', ...rules, ...connecting)
    const url = new URL(server.url)
    url.username = 'listed'
    url.password = 'secret'
    for (const kind of clientKinds) await useAll(await opens(openClient(kind, url.href)), `rights ${kind}`)
    const { tasks } = redisDriver(await opens(openClient('ioredis 6', url.href))).open('rights ioredis 6')
    expect(await tasks.purge({ retentionMs: -60_000, limit: 10 }, call)).toBe(1)
  })
})

describe('a retry connection', () => {
  it.each(clientKinds)('renews a lease while the client’s own connection hangs (%s)', async (kind) => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const direct = () => openClient(kind, server.url)
    const spare = await direct()
    closing.push(() => spare.close())
    const client = await opens(openClient(kind, proxy.url))
    const driver = redisDriver(client, { retryConnection: spare.client })
    const session = driver.open(`retry ${kind}`)
    const lease = await grant(session, 'key')
    await proxy.set('blackhole')
    session.locks.refresh([lease], call).catch(() => {})
    expect(await session.locks.refresh([lease], { ...call, attempt: 2 })).toMatchObject([{ outcome: 'held' }])
    expect(await session.tasks.poll({ ...call, attempt: 3 })).toMatchObject({ version: 0 })
    await session.close()
    expect(await spare.send('ping')).toBe('PONG')
  })

  it.each(clientKinds)(
    'is a duplicate that is opened when it is needed and closed with its session (%s)',
    async (kind) => {
      const proxy = await startFaultProxy(server.url)
      closing.push(() => proxy.close())
      const client = await opens(openClient(kind, proxy.url))
      const session = redisDriver(client, { retryConnection: true }).open(`retry ${kind}`)
      const lease = await grant(session, 'duplicate')
      expect(proxy.connections).toBe(1)
      for (let round = 0; round < 3; round++) {
        expect(await session.locks.refresh([lease], { ...call, attempt: 2 })).toMatchObject([
          { outcome: 'held' },
        ])
      }
      expect(proxy.connections).toBe(2)
      await session.close()
      await eventually(
        () => proxy.connections,
        (count) => count === 1,
      )
    },
  )

  it('gives way to the client where it cannot be opened', async () => {
    const client = await opens(openClient('node-redis 6', server.url))
    const session = redisDriver(client, {
      retryConnection: () => new Redis({ port: 1, host: '127.0.0.1', retryStrategy: () => null }),
    }).open('no retry')
    const lease = await grant(session, 'key')
    expect(await session.locks.refresh([lease], { ...call, attempt: 2 })).toMatchObject([{ outcome: 'held' }])
    await session.close()
  })

  it('is not opened where nobody asked for it', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const session = redisDriver(await opens(openClient('ioredis 6', proxy.url))).open('none')
    const lease = await grant(session, 'key')
    await session.locks.refresh([lease], { ...call, attempt: 2 })
    expect(proxy.connections).toBe(1)
  })
})
