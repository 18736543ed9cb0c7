// What can lock a key in Redis. The subjects on ioredis share one client, those on node-redis another.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { LockService } from 'leasehold'
import { redisDriver } from 'leasehold/redis'
import type { RedisClientType } from 'redis'
import { confirmed, type Hold, type Mutex, type MutexSubject, noWaiting } from '../mutex.ts'
import { loadPeer } from '../peers.ts'
import { batchedByHand } from './batched.ts'
import { leaseholdMutex } from './leasehold.ts'
import { verrouMutex } from './verrou.ts'

export interface RedisConnections {
  readonly ioredis: Redis
  readonly nodeRedis: RedisClientType
}

export type RedisSubject = MutexSubject<RedisConnections>

const ttlMs = 30_000
const freeIfMine = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

export async function openRedisConnections(
  url: string,
): Promise<RedisConnections & { close(): Promise<void> }> {
  const [ioredisModule, redisModule] = await Promise.all([
    loadPeer<typeof import('ioredis')>('ioredis'),
    loadPeer<typeof import('redis')>('redis'),
  ])
  const ioredis = new ioredisModule.Redis(url)
  const nodeRedis = redisModule.createClient({ url }) as RedisClientType
  nodeRedis.on('error', () => {})
  await nodeRedis.connect()
  return {
    ioredis,
    nodeRedis,
    async close() {
      ioredis.disconnect()
      nodeRedis.destroy()
    },
  }
}

export const redisSubjects: readonly RedisSubject[] = [
  { name: 'leasehold', role: 'ours', open: async ({ ioredis }) => leasehold(ioredis) },
  { name: 'leasehold on node-redis', role: 'ours', open: async ({ nodeRedis }) => leasehold(nodeRedis) },
  { name: 'redlock 5', role: 'peer', open: ({ ioredis }) => redlock('redlock', ioredis) },
  {
    name: '@sesamecare-oss/redlock',
    role: 'peer',
    open: ({ ioredis }) => redlock('@sesamecare-oss/redlock', ioredis),
  },
  { name: 'redis-semaphore', role: 'peer', open: ({ ioredis }) => redisSemaphore(ioredis) },
  { name: '@verrou/core', role: 'peer', open: ({ ioredis }) => verrou(ioredis) },
  { name: 'redlock-universal', role: 'peer', open: ({ ioredis }) => redlockUniversal(ioredis) },
  { name: 'raw ioredis', role: 'raw', open: async ({ ioredis }) => rawIoredis(ioredis) },
  {
    name: 'raw ioredis, auto-pipelining',
    role: 'other',
    open: async ({ ioredis }) => {
      const client = ioredis.duplicate({ enableAutoPipelining: true })
      return { ...rawIoredis(client), close: async () => client.disconnect() }
    },
  },
  {
    name: 'raw ioredis, batched by hand',
    role: 'other',
    open: async ({ ioredis }) => batchedByHand(ioredis),
  },
  { name: 'raw node-redis', role: 'other', open: async ({ nodeRedis }) => rawNodeRedis(nodeRedis) },
]

function leasehold(client: Redis | RedisClientType): Mutex {
  const locks = new LockService({ driver: redisDriver(client), namespace: 'bench' })
  return leaseholdMutex(locks)
}

interface RedlockLock {
  release(): Promise<unknown>
}

interface RedlockClass {
  new (
    clients: Redis[],
    settings?: object,
  ): {
    acquire(keys: string[], ttl: number, settings?: object): Promise<RedlockLock>
  }
}

/** Both packages have the same interface. The settings are those of their README; waiters try for ever. */
async function redlock(name: string, client: Redis): Promise<Mutex> {
  const module = await loadPeer<Record<string, unknown>>(name)
  const Redlock = (module['Redlock'] ?? nested(module['default'])) as RedlockClass
  const redlocks = new Redlock([client], {
    driftFactor: 0.01,
    retryCount: -1,
    retryDelay: 200,
    retryJitter: 200,
  })
  const holdOf = (lock: RedlockLock): Hold => ({
    async release() {
      await lock.release()
    },
  })
  return {
    tryAcquire: async (key) => {
      try {
        return holdOf(await redlocks.acquire([key], ttlMs, { retryCount: 0 }))
      } catch (error) {
        if (error instanceof Error && /quorum|locked/i.test(error.message)) return null
        throw error
      }
    },
    acquire: async (key) => holdOf(await redlocks.acquire([key], ttlMs)),
    close: async () => {},
  }
}

/** A CommonJS package whose default export arrives as a property of the default. */
function nested(module: unknown): unknown {
  return (module as { default?: unknown }).default ?? module
}

interface SemaphoreModule {
  readonly Mutex: new (
    client: Redis,
    key: string,
    options: object,
  ) => {
    tryAcquire(): Promise<boolean>
    acquire(): Promise<void>
    release(): Promise<void>
  }
}

/** Renews by default, as we do. Its default ttl is 10 s; its `tryAcquire` tries until a timeout, unless it is given a limit. */
async function redisSemaphore(client: Redis): Promise<Mutex> {
  const { Mutex: Semaphore } = await loadPeer<SemaphoreModule>('redis-semaphore')
  return {
    async tryAcquire(key) {
      const mutex = new Semaphore(client, key, { lockTimeout: ttlMs, acquireAttemptsLimit: 1 })
      return (await mutex.tryAcquire()) ? mutex : null
    },
    async acquire(key) {
      const mutex = new Semaphore(client, key, { lockTimeout: ttlMs, acquireTimeout: 600_000 })
      await mutex.acquire()
      return mutex
    },
    close: async () => {},
  }
}

async function verrou(client: Redis): Promise<Mutex> {
  const { redisStore } = await loadPeer<{ redisStore(options: object): { factory(): unknown } }>(
    '@verrou/core/drivers/redis',
  )
  return verrouMutex(redisStore({ connection: client }).factory())
}

interface UniversalModule {
  readonly IoredisAdapter: new (client: Redis) => unknown
  createLock(options: object): { acquire(): Promise<unknown>; release(handle: unknown): Promise<boolean> }
}

async function redlockUniversal(client: Redis): Promise<Mutex> {
  const { IoredisAdapter, createLock } = await loadPeer<UniversalModule>('redlock-universal')
  const adapter = new IoredisAdapter(client)
  const take = async (key: string, retryAttempts: number): Promise<Hold> => {
    const lock = createLock({ adapter, key, ttl: ttlMs, retryAttempts, retryDelay: 100 })
    const handle = await lock.acquire()
    return confirmed(() => lock.release(handle))
  }
  return {
    async tryAcquire(key) {
      try {
        return await take(key, 0)
      } catch (error) {
        if (error instanceof Error && error.name === 'LockAcquisitionError') return null
        throw error
      }
    },
    acquire: (key) => take(key, 1_000_000),
    close: async () => {},
  }
}

/** Two round trips: the least that a cycle of one caller can do. Nobody waits without a library. */
function rawIoredis(client: Redis): Mutex {
  client.defineCommand('freeIfMine', { numberOfKeys: 1, lua: freeIfMine })
  const scripted = client as Redis & { freeIfMine(key: string, token: string): Promise<number> }
  return {
    async tryAcquire(key) {
      const token = randomUUID()
      if ((await client.set(key, token, 'PX', ttlMs, 'NX')) !== 'OK') return null
      return confirmed(async () => (await scripted.freeIfMine(key, token)) === 1)
    },
    acquire: noWaiting,
    close: async () => {},
  }
}

async function rawNodeRedis(client: RedisClientType): Promise<Mutex> {
  const sha = await client.scriptLoad(freeIfMine)
  return {
    async tryAcquire(key) {
      const token = randomUUID()
      const isMine =
        (await client.set(key, token, { condition: 'NX', expiration: { type: 'PX', value: ttlMs } })) === 'OK'
      if (!isMine) return null
      return confirmed(async () => (await client.evalSha(sha, { keys: [key], arguments: [token] })) === 1)
    },
    acquire: noWaiting,
    close: async () => {},
  }
}
