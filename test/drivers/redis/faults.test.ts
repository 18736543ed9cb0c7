import { once } from 'node:events'
import { inspect } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { DriverSession } from 'leasehold/driver'
import { redisDriver, type NodeRedisClient, type RedisClient } from 'leasehold/redis'
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.ts'
import { startRedis, type TestServer } from '../../support/servers.ts'
import {
  clientKinds,
  openClient,
  openIoRedis6,
  openNodeRedis5,
  openNodeRedis6,
  type OpenClient,
} from './clients.ts'
import { call, claimOf, eventually, faultOf, grant, registration, wanted } from './requests.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** A session over this client, closed with the test. */
function sessionOver(client: RedisClient): DriverSession {
  const session = redisDriver(client).open('faults')
  closing.push(() => session.close())
  return session
}

async function opens(opening: Promise<OpenClient>): Promise<OpenClient> {
  const opened = await opening
  closing.push(() => opened.close())
  return opened
}

async function starts(config: Record<string, string> = {}): Promise<TestServer> {
  const server = await startRedis({ config })
  closing.push(() => server.close())
  return server
}

describe('a client that cannot send', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.close())

  it.each(clientKinds)('was closed: every call is certainly not sent, and says why (%s)', async (kind) => {
    const opened = await openClient(kind, server.url)
    const session = sessionOver(opened.client)
    await grant(session, `closed ${kind}`)
    await opened.close()
    await eventually(
      () => session.locks.peek(['a'], call).then(String, (error: unknown) => (error as Error).message),
      (text) => /close/.test(text),
    )
    const { locks, tasks } = session
    for (const calling of [
      locks.acquire([wanted('a')], call),
      locks.refresh([wanted('a')], call),
      locks.release([wanted('a')], call),
      locks.revoke({ key: 'a', fence: 1, immediate: true }, call),
      locks.peek(['a'], call),
      locks.scan({ prefix: '', limit: 1, cursor: null }, call),
      locks.purge({ retentionMs: 1, limit: 1 }, call),
      tasks.register([registration('a')], call),
      tasks.claim([claimOf('a', 2, 1)], call),
      tasks.poll(call),
    ]) {
      expect(await faultOf(calling)).toMatchObject({
        kind: 'not-sent',
        message: expect.stringMatching(/clos/),
      })
    }
  })

  it('was never connected: node-redis', async () => {
    const fault = await faultOf(sessionOver(createClient()).locks.acquire([wanted('a')], call))
    expect(fault).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('connect()') })
  })

  it('connects at the first command, as its owner wished: ioredis', async () => {
    const client = new Redis(server.url, { lazyConnect: true })
    closing.push(() => client.disconnect())
    const session = sessionOver(client)
    expect(client.status).toBe('wait')
    await grant(session, 'lazy')
  })

  it('has lost its server and keeps no queue: certainly not sent', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const io = await opens(openIoRedis6(proxy.url, { enableOfflineQueue: false }))
    const node = await opens(openNodeRedis6({ url: proxy.url, disableOfflineQueue: true }))
    const sessions = [sessionOver(io.client), sessionOver(node.client)]
    await proxy.set('refuse')
    await eventually(
      () => (io.client as Redis).status !== 'ready' && !(node.client as NodeRedisClient).isReady,
      Boolean,
    )
    for (const session of sessions) {
      const fault = await faultOf(session.locks.acquire([wanted('queueless')], call))
      expect(fault.kind).toBe('not-sent')
      expect(fault.message).toContain('did not send')
    }
  })

  it('has lost its server and gives its queue up: no telling', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const { client } = await opens(
      openIoRedis6(proxy.url, { maxRetriesPerRequest: 1, retryStrategy: () => 1 }),
    )
    const session = sessionOver(client)
    await proxy.set('refuse')
    expect(await faultOf(session.locks.acquire([wanted('queued')], call))).toMatchObject({ kind: 'unknown' })
  })

  it('has lost its server for good: certainly not sent', async () => {
    const proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
    const io = await opens(openIoRedis6(proxy.url, { retryStrategy: () => null }))
    const node = await opens(openNodeRedis5({ url: proxy.url, socket: { reconnectStrategy: false } }))
    const sessions = [sessionOver(io.client), sessionOver(node.client)]
    await proxy.set('refuse')
    for (const session of sessions) {
      await eventually(
        () => faultOf(session.locks.acquire([wanted('gone')], call)),
        ({ kind }) => kind === 'not-sent',
      )
    }
  })
})

describe('a call that was under way when the connection was lost', () => {
  let server: TestServer
  let proxy: FaultProxy
  let operator: OpenClient
  let witness: DriverSession
  beforeAll(async () => {
    server = await startRedis()
    operator = await openClient('ioredis 6', server.url)
    witness = redisDriver(operator.client).open('faults')
  })
  afterAll(async () => {
    await operator.close()
    await server.close()
  })
  beforeEach(async () => {
    proxy = await startFaultProxy(server.url)
    closing.push(() => proxy.close())
  })

  /** Sends an acquire that is carried out and whose answer is lost. */
  async function loseAnswer(session: DriverSession, key: string) {
    await proxy.set('drop-answers')
    const request = wanted(key)
    const calling = session.locks.acquire([request], call)
    calling.catch(() => {})
    await eventually(
      () => witness.locks.peek([key], call),
      ([record]) => record !== null,
    )
    return { request, calling }
  }

  it('has an unknown outcome with node-redis, 5 and 6, and asked again keeps its fence', async () => {
    for (const open of [openNodeRedis5, openNodeRedis6]) {
      const { client } = await opens(open({ url: proxy.url }))
      const session = sessionOver(client)
      const key = `lost ${open.name}`
      await session.locks.acquire([wanted('to load the script')], call)
      const { request, calling } = await loseAnswer(session, key)
      const [record] = await witness.locks.peek([key], call)
      await proxy.set('pass')
      proxy.resetAll()
      expect(await faultOf(calling)).toMatchObject({ kind: 'unknown' })
      const [again] = await session.locks.acquire([request], call)
      expect(again).toMatchObject({ outcome: 'granted', fence: record?.fence })
    }
  })

  it('is sent again by ioredis, and granted with the fence it had', async () => {
    const { client } = await opens(openIoRedis6(proxy.url))
    const session = sessionOver(client)
    await session.locks.acquire([wanted('to load the script')], call)
    const { calling } = await loseAnswer(session, 'resent')
    const [record] = await witness.locks.peek(['resent'], call)
    await proxy.set('pass')
    proxy.resetAll()
    expect(await calling).toMatchObject([{ outcome: 'granted', fence: record?.fence }])
  })

  it('has an unknown outcome with an ioredis that does not reconnect', async () => {
    const { client } = await opens(openIoRedis6(proxy.url, { retryStrategy: () => null }))
    const session = sessionOver(client)
    await session.locks.acquire([wanted('to load the script')], call)
    const { calling } = await loseAnswer(session, 'cut')
    proxy.resetAll()
    expect(await faultOf(calling)).toMatchObject({ kind: 'unknown' })
  })

  it('has an unknown outcome if ioredis sends it again and it is refused then', async () => {
    const { client } = await opens(openIoRedis6(proxy.url))
    const session = sessionOver(client)
    await session.locks.acquire([wanted('to load the script')], call)
    const { calling } = await loseAnswer(session, 'refused')
    await operator.send('config', 'set', 'min-replicas-to-write', '1')
    try {
      await proxy.set('pass')
      proxy.resetAll()
      expect(await faultOf(calling)).toMatchObject({
        kind: 'unknown',
        message: expect.stringContaining('NOREPLICAS'),
      })
      // Said once, on one connection, the same refusal is certain.
      expect(await faultOf(session.locks.acquire([wanted('certain')], call))).toMatchObject({
        kind: 'not-sent',
      })
    } finally {
      await operator.send('config', 'set', 'min-replicas-to-write', '0')
    }
  })

  it('has an unknown outcome when the client’s own timeout ends it', async () => {
    const { client } = await opens(openIoRedis6(proxy.url, { commandTimeout: 100 }))
    const session = sessionOver(client)
    await proxy.set('blackhole')
    expect(await faultOf(session.locks.acquire([wanted('slow')], call))).toMatchObject({ kind: 'unknown' })
  })
})

describe('a server that refuses', () => {
  it('because it is a replica: certainly not applied, with advice', async () => {
    const primary = await starts()
    const replica = await starts({ replicaof: `127.0.0.1 ${primary.port}` })
    for (const kind of clientKinds) {
      const { client } = await opens(openClient(kind, replica.url))
      const fault = await faultOf(sessionOver(client).locks.acquire([wanted('a')], call))
      expect(fault).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('replica') })
    }
  })

  it('is not quoted with anybody’s token', async () => {
    const server = await starts()
    const operator = await opens(openClient('ioredis 6', server.url))
    await operator.send('config', 'set', 'min-replicas-to-write', '1')
    for (const kind of clientKinds) {
      const { client } = await opens(openClient(kind, server.url))
      const request = wanted('a')
      const fault = await faultOf(sessionOver(client).locks.acquire([request], call))
      const shown = inspect(fault, { depth: Infinity, showHidden: true })
      expect(shown).toContain('NOREPLICAS')
      expect(shown).not.toContain(request.token)
    }
  })

  it('because it is a replica without its primary', async () => {
    const primary = await starts()
    const replica = await starts({
      replicaof: `127.0.0.1 ${primary.port}`,
      'replica-serve-stale-data': 'no',
    })
    const { client } = await opens(openIoRedis6(replica.url, { enableReadyCheck: false }))
    await primary.stop()
    const fault = await eventually(
      () => faultOf(sessionOver(client).locks.peek(['a'], call)),
      ({ message }) => message.includes('MASTERDOWN'),
    )
    expect(fault.kind).toBe('not-sent')
  })

  it('because it is loading', async () => {
    const server = await starts({
      'enable-debug-command': 'yes',
      'key-load-delay': '20000',
      'loading-process-events-interval-bytes': '1024',
    })
    const operator = await opens(openClient('ioredis 6', server.url))
    const { client } = await opens(openClient('node-redis 6', server.url))
    const session = sessionOver(client)
    await session.locks.acquire(
      Array.from({ length: 100 }, (_, index) => wanted(`key ${index}`)),
      call,
    )
    const reloading = operator.send('debug', 'reload')
    const fault = await eventually(
      () =>
        session.locks.acquire([wanted('a')], call).then(
          () => null,
          (error: unknown) => error,
        ),
      (error) => error !== null,
    )
    expect(fault).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('LOADING') })
    await operator.send('config', 'set', 'key-load-delay', '0')
    await reloading
  })

  it('because it is busy with a script of somebody else', async () => {
    const server = await starts({ 'lua-time-limit': '5' })
    const operator = await opens(openClient('ioredis 6', server.url))
    const { client } = await opens(openClient('ioredis 6', server.url))
    const session = sessionOver(client)
    const other = await opens(openClient('ioredis 6', server.url))
    const running = other.send('eval', 'while true do end', '0')
    running.catch(() => {})
    const fault = await eventually(
      () =>
        session.locks.acquire([wanted('a')], call).then(
          () => null,
          (error: unknown) => error,
        ),
      (error) => error !== null,
    )
    expect(fault).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('BUSY') })
    await operator.send('script', 'kill')
    await expect(running).rejects.toThrow()
    await grant(session, 'a')
  })

  it('because the client has no password: no retry helps', async () => {
    const server = await starts({ requirepass: 'secret' })
    const open = new URL(server.url)
    open.password = ''
    const isRefused = { kind: 'unusable', message: expect.stringContaining('password') }
    const io = new Redis(open.href, { retryStrategy: () => null })
    io.on('error', () => {})
    closing.push(() => io.disconnect())
    expect(await faultOf(sessionOver(io).locks.acquire([wanted('a')], call))).toMatchObject(isRefused)
    const node = await opens(openNodeRedis5({ url: open.href }))
    expect(await faultOf(sessionOver(node.client).locks.acquire([wanted('a')], call))).toMatchObject(
      isRefused,
    )
  })

  it('because the user of the client lacks a right: no retry helps', async () => {
    const server = await starts()
    const operator = await opens(openClient('ioredis 6', server.url))
    await operator.send('acl', 'setuser', 'reader', 'on', '>secret', '~*', '+@all', '-@scripting')
    await operator.send('acl', 'setuser', 'elsewhere', 'on', '>secret', '~other:*', '+@all')
    for (const user of ['reader', 'elsewhere']) {
      const url = new URL(server.url)
      url.username = user
      url.password = 'secret'
      for (const kind of clientKinds) {
        const { client } = await opens(openClient(kind, url.href))
        const fault = await faultOf(sessionOver(client).locks.acquire([wanted('a')], call))
        expect(fault).toMatchObject({ kind: 'unusable', message: expect.stringContaining('NOPERM') })
      }
    }
  })
})

describe('a server that is full', () => {
  let server: TestServer
  let opened: OpenClient
  let session: DriverSession
  beforeEach(async () => {
    server = await starts()
    opened = await opens(openClient('ioredis 6', server.url))
    session = sessionOver(opened.client)
  })

  it('grants nothing and applies nothing, but renews and frees what is held', async () => {
    const leases = [await grant(session, 'a'), await grant(session, 'b')]
    const [registered] = await session.tasks.register([registration('task')], call)
    if (registered === undefined || !('mark' in registered)) throw new Error('not registered')
    const { mark } = registered
    const claim = claimOf('task', mark + 1, mark)
    const [run] = await eventually(
      () => session.tasks.claim([claim], call),
      ([answer]) => answer?.outcome === 'granted',
    )
    if (run?.outcome !== 'granted') throw new Error('not granted')

    await opened.send('config', 'set', 'maxmemory', '1')
    const fault = await faultOf(session.locks.acquire([wanted('c'), wanted('d')], call))
    expect(fault).toMatchObject({ kind: 'not-sent', message: expect.stringContaining('maxmemory') })
    expect(await faultOf(session.tasks.register([registration('new')], call))).toMatchObject({
      kind: 'not-sent',
    })
    expect(await session.locks.peek(['c', 'd'], call)).toEqual([null, null])

    expect(
      await session.locks.refresh(
        leases.map((lease) => ({ ...lease, ttlMs: 90_000 })),
        call,
      ),
    ).toMatchObject([{ outcome: 'held' }, { outcome: 'held' }])
    expect(await session.locks.acquire([wanted('a', { waitingMs: 5_000 })], call)).toMatchObject([
      { outcome: 'held' },
    ])
    expect(await session.locks.peek(['a'], call)).toMatchObject([{ awaited: true }])
    expect(
      await session.tasks.refresh([{ task: 'task', token: claim.token, ttlMs: 90_000 }], call),
    ).toMatchObject([{ outcome: 'held' }])
    const { slot, attempt, fence } = run
    expect(
      await session.tasks.complete(
        [{ task: 'task', slot, attempt, fence, outcome: 'succeeded', reason: null, error: null }],
        call,
      ),
    ).toMatchObject([{ outcome: 'completed' }])
    expect(
      await session.tasks.control(
        { task: 'task', kind: 'pause', requestId: '1', by: 'me', fence: null },
        call,
      ),
    ).toMatchObject({ outcome: 'applied' })
    expect(await session.locks.release(leases, call)).toEqual([
      { outcome: 'released' },
      { outcome: 'released' },
    ])
    expect(await opened.send('pttl', '{leasehold:faults}:t:task')).toBe(-1)
  })
})

describe('a server that lost its data', () => {
  it.each(['flushall', 'restart'])(
    'has lost every lease and every task; fences go on rising (%s)',
    async (how) => {
      const server = await starts()
      const { client, send } = await opens(openClient('ioredis 6', server.url))
      const session = sessionOver(client)
      const lease = await grant(session, 'a')
      await session.tasks.register([registration('task')], call)
      if (how === 'flushall') await send('flushall')
      else {
        const ready = once(client as Redis, 'ready')
        await server.restart()
        await ready
      }
      expect(await session.locks.refresh([lease], call)).toEqual([{ outcome: 'lost', reason: 'gone' }])
      expect(await session.locks.peek(['a'], call)).toEqual([null])
      const [claimed] = await session.tasks.claim([claimOf('task', 5, 4)], call)
      expect(claimed).toMatchObject({ outcome: 'unregistered', running: null })
      expect(await session.tasks.log({ task: 'task', from: null, to: null, limit: 5 }, call)).toMatchObject([
        { state: 'registered' },
      ])
      expect((await grant(session, 'a')).fence).toBeGreaterThan(lease.fence)
      expect(await session.locks.release([lease], call)).toEqual([{ outcome: 'lost' }])
    },
  )
})
