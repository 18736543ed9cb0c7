import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Redis } from 'ioredis'
import { createClient as createNodeRedis5 } from 'node-redis5'
import { createClient } from 'redis'
import type { DriverSession, Notice, NoticeChannel } from 'leasehold/driver'
import { redisDriver, type RedisDriverOptions } from 'leasehold/redis'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { startRedis, type TestServer } from '../../support/servers.ts'
import {
  clientKinds,
  openClient,
  openIoRedis5,
  openIoRedis6,
  openNodeRedis5,
  openNodeRedis6,
  type ClientKind,
  type OpenClient,
} from './clients.ts'
import { call, eventually, faultOf, grant, registration, wanted } from './requests.ts'

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

async function opens(opening: Promise<OpenClient>): Promise<OpenClient> {
  const opened = await opening
  closing.push(() => opened.close())
  return opened
}

function sessionOver(
  { client }: Pick<OpenClient, 'client'>,
  options: RedisDriverOptions = {},
  namespace = 'notices',
): DriverSession {
  const session = redisDriver(client, options).open(namespace)
  closing.push(() => session.close())
  return session
}

interface Listening {
  readonly channel: NoticeChannel
  readonly notices: Notice[]
  readonly deaf: unknown[]
}

async function listenOn(session: DriverSession): Promise<Listening> {
  const notices: Notice[] = []
  const deaf: unknown[] = []
  const channel = await session.listen?.({
    onNotice: (notice) => notices.push(notice),
    onDeaf: (error) => deaf.push(error),
  })
  if (channel === undefined) throw new Error('no push')
  return { channel, notices, deaf }
}

/** Lets somebody wait for a key and releases it. */
async function releaseAwaited(session: DriverSession, key: string): Promise<void> {
  const lease = await grant(session, key)
  await session.locks.acquire([wanted(key, { waitingMs: 60_000 })], call)
  await session.locks.release([lease], call)
}

const idsOf = async (type: 'normal' | 'pubsub') =>
  [...((await operator.send('client', 'list', 'type', type)) as string).matchAll(/^id=(\d+)/gm)].map(
    ([, id]) => id as string,
  )

const kill = async (type: 'normal' | 'pubsub') => {
  const own = String(await operator.send('client', 'id'))
  const ids = (await idsOf(type)).filter((id) => id !== own)
  for (const id of ids) await operator.send('client', 'kill', 'id', id)
  return ids.length
}

const published = async () => {
  const info = (await operator.send('info', 'commandstats')) as string
  return Number(/cmdstat_publish:calls=(\d+)/.exec(info)?.[1] ?? 0)
}

describe.each(clientKinds)('the push channel with %s', (kind: ClientKind) => {
  it('is a connection that is open only while somebody listens', async () => {
    const opened = await opens(openClient(kind, server.url))
    const session = sessionOver(opened)
    await grant(session, `quiet ${kind}`)
    const before = await idsOf('normal')
    expect(await idsOf('pubsub')).toEqual([])
    const { channel } = await listenOn(session)
    expect(await idsOf('pubsub')).toHaveLength(1)
    expect(await idsOf('normal')).toEqual(before)
    await channel.close()
    await channel.close()
    await eventually(
      () => idsOf('pubsub'),
      (ids) => ids.length === 0,
    )
    expect(await idsOf('normal')).toEqual(before)
  })

  it('hears releases of awaited keys and control versions, and a probe once it works', async () => {
    const session = sessionOver(await opens(openClient(kind, server.url)), {}, `heard ${kind}`)
    const other = sessionOver(await opens(openClient('ioredis 6', server.url)), {}, `heard ${kind}`)
    const { channel, notices } = await listenOn(session)
    await channel.probe()
    for (const key of ['a', 'p', '😀 {b}:k:']) await releaseAwaited(other, key)
    await other.tasks.register([registration('task')], call)
    await other.tasks.control({ task: 'task', kind: 'pause', requestId: '1', by: '', fence: null }, call)
    await channel.probe()
    expect(notices).toEqual([
      { kind: 'released', key: 'a' },
      { kind: 'released', key: 'p' },
      { kind: 'released', key: '😀 {b}:k:' },
      { kind: 'control', version: 1 },
    ])
  })

  it('recovers by itself when its connection is killed, as the client’s own does, and says what that may cost (M32)', async () => {
    const session = sessionOver(await opens(openClient(kind, server.url)), {}, `killed ${kind}`)
    const { channel, notices, deaf } = await listenOn(session)
    for (const type of ['pubsub', 'normal'] as const) {
      expect(await kill(type)).toBe(1)
      await eventually(
        () => idsOf('pubsub'),
        (ids) => ids.length === 1,
      )
      await eventually(
        () =>
          session.locks.peek(['a'], call).then(
            () => true,
            () => false,
          ),
        Boolean,
      )
    }
    await channel.probe()
    await releaseAwaited(session, 'a')
    await channel.probe()
    expect(notices).toEqual([{ kind: 'missed' }, { kind: 'released', key: 'a' }])
    expect(deaf).toEqual([])
  })

  it('recovers by itself when the server restarts, and says what that may cost', async () => {
    const own = await startRedis()
    closing.push(() => own.close())
    const session = sessionOver(await opens(openClient(kind, own.url)))
    const { channel, notices, deaf } = await listenOn(session)
    await own.restart()
    await eventually(
      () =>
        session.locks.peek(['a'], call).then(
          () => true,
          () => false,
        ),
      Boolean,
    )
    const watcher = await opens(openClient('ioredis 6', own.url))
    await eventually(
      () => watcher.send('pubsub', 'numsub', '{leasehold:notices}:wake'),
      (counts) => (counts as unknown[])[1] === 1,
    )
    await channel.probe()
    await releaseAwaited(session, 'a')
    await channel.probe()
    expect(notices).toEqual([{ kind: 'missed' }, { kind: 'released', key: 'a' }])
    expect(deaf).toEqual([])
  })

  it('is not to be had from a server out of reach, and leaves nothing open', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const session = sessionOver(await opens(openClient(kind, proxy.url)))
    await proxy.set('refuse')
    expect(await faultOf(session.listen!({ onNotice() {}, onDeaf() {} }))).toMatchObject({
      kind: 'not-sent',
      message: expect.stringContaining('does not push'),
    })
    await proxy.set('pass')
    await session.close()
    expect(await idsOf('pubsub')).toEqual([])
  })

  it('ends with its session, also while it is being opened on a server that hangs', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const session = sessionOver(await opens(openClient(kind, proxy.url)))
    const { channel, deaf } = await listenOn(session)
    await proxy.set('blackhole')
    const opening = session.listen!({ onNotice() {}, onDeaf() {} })
    const probing = channel.probe()
    for (const promise of [opening, probing]) promise.catch(() => {})
    await eventually(
      () => proxy.connections,
      (count) => count === 3,
    )
    await session.close()
    expect(await faultOf(opening)).toMatchObject({ kind: 'not-sent' })
    await faultOf(probing)
    await faultOf(channel.probe())
    await faultOf(session.listen!({ onNotice() {}, onDeaf() {} }))
    // What was ended meanwhile is seen at the other side now.
    await proxy.set('pass')
    await eventually(
      () => proxy.connections,
      (count) => count === 1,
    )
    expect(deaf).toEqual([])
  })

  it('says nothing where nobody waits', async () => {
    const session = sessionOver(await opens(openClient(kind, server.url)), {}, `silent ${kind}`)
    await operator.send('config', 'resetstat')
    const lease = await grant(session, 'a')
    await session.locks.acquire([wanted('a')], call)
    await session.locks.release([lease], call)
    const other = await grant(session, 'a')
    await session.locks.revoke({ key: 'a', fence: other.fence, immediate: true }, call)
    expect(await published()).toBe(0)
    const third = await grant(session, 'a')
    await session.locks.acquire([wanted('a', { waitingMs: 60_000 })], call)
    await session.locks.revoke({ key: 'a', fence: third.fence, immediate: false }, call)
    expect(await published()).toBe(0)
    await session.locks.release([third], call)
    expect(await published()).toBe(1)
    await session.locks.release([third], call)
    expect(await published()).toBe(1)
  })
})

describe('the push channel', () => {
  it('says that it is deaf when its client gives up', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const opened = await Promise.all([
      opens(openIoRedis6(proxy.url, { retryStrategy: () => null })),
      opens(openIoRedis5(proxy.url, { retryStrategy: () => null })),
      opens(openNodeRedis6({ url: proxy.url, socket: { reconnectStrategy: false } })),
      opens(openNodeRedis5({ url: proxy.url, socket: { reconnectStrategy: false } })),
    ])
    const listening = await Promise.all(opened.map((one) => listenOn(sessionOver(one))))
    await proxy.set('refuse')
    for (const { channel, deaf } of listening) {
      await eventually(
        () => deaf.length,
        (count) => count === 1,
      )
      await faultOf(channel.probe())
      await channel.close()
    }
  })

  it('works over RESP2 as well', async () => {
    for (const opening of [
      openIoRedis6(server.url, { protocol: 2 }),
      openNodeRedis6({ url: server.url, RESP: 2 }),
      openNodeRedis5({ url: server.url, RESP: 3 }),
    ]) {
      const session = sessionOver(await opens(opening))
      const { channel, notices } = await listenOn(session)
      await channel.probe()
      await releaseAwaited(session, 'resp')
      await channel.probe()
      expect(notices).toEqual([{ kind: 'released', key: 'resp' }])
      await session.close()
    }
  })

  it('uses a connection that it was given, and leaves it open', async () => {
    for (const kind of clientKinds) {
      const main = await opens(openClient(kind, server.url))
      const subscriber = await opens(openClient(kind, server.url))
      const options = { subscriber: subscriber.client }
      const first = await listenOn(sessionOver(main, options))
      const second = await listenOn(sessionOver(main, options))
      expect(await idsOf('pubsub')).toHaveLength(1)
      await second.channel.close()
      await first.channel.probe()
      await releaseAwaited(sessionOver(main), 'given')
      await first.channel.probe()
      expect([kind, first.notices, second.notices]).toEqual([kind, [{ kind: 'released', key: 'given' }], []])
      await first.channel.close()
      await eventually(
        () => idsOf('pubsub'),
        (ids) => ids.length === 0,
      )
      expect(String(await subscriber.send('ping'))).toBe('PONG')
    }
  })

  it('opens and closes what a function makes', async () => {
    const makers = [
      () => new Redis(server.url),
      () => new Redis(server.url, { lazyConnect: true }),
      () => createClient({ url: server.url }),
      async () => {
        const client = createNodeRedis5({ url: server.url })
        client.on('error', () => {})
        await client.connect()
        return client
      },
    ]
    for (const subscriber of makers) {
      const { channel } = await listenOn(
        sessionOver(await opens(openClient('ioredis 5', server.url)), { subscriber }),
      )
      await channel.probe()
      expect(await idsOf('pubsub')).toHaveLength(1)
      await channel.close()
      await eventually(
        () => idsOf('pubsub'),
        (ids) => ids.length === 0,
      )
    }
  })

  it('is refused where a function makes no client, or fails', async () => {
    const opened = await opens(openClient('ioredis 6', server.url))
    const makers = [
      () => ({}) as never,
      async () => {
        throw new Error('no connection left')
      },
    ]
    for (const subscriber of makers) {
      const session = sessionOver(opened, { subscriber })
      expect(await faultOf(session.listen!({ onNotice() {}, onDeaf() {} }))).toMatchObject({
        kind: 'not-sent',
      })
    }
  })

  it('is not there without push', async () => {
    const driver = redisDriver((await opens(openClient('ioredis 6', server.url))).client, { push: false })
    expect(driver.abilities.push).toBe(false)
    expect(driver.open('a').listen).toBeUndefined()
  })

  it('is refused to a user who may not subscribe, and releases and controls work all the same', async () => {
    await operator.send('acl', 'setuser', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels')
    const url = new URL(server.url)
    url.username = 'mute'
    url.password = 'secret'
    for (const kind of clientKinds) {
      const session = sessionOver(await opens(openClient(kind, url.href)), {}, `mute ${kind}`)
      await releaseAwaited(session, 'a')
      expect(await session.locks.peek(['a'], call)).toEqual([null])
      await session.tasks.register([registration('task')], call)
      expect(
        await session.tasks.control(
          { task: 'task', kind: 'pause', requestId: '1', by: '', fence: null },
          call,
        ),
      ).toEqual({ outcome: 'applied', version: 1 })
      expect(await faultOf(session.listen!({ onNotice() {}, onDeaf() {} }))).toMatchObject({
        kind: 'not-sent',
        message: expect.stringContaining('NOPERM'),
      })
    }
    await eventually(
      () => idsOf('pubsub'),
      (ids) => ids.length === 0,
    )
  })
})
