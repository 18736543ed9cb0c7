import type { RedisConnection } from '../../../../src/drivers/redis/clients.ts'
import type { RedisKeys } from '../../../../src/drivers/redis/keys.ts'
import { type PlantedBug, reword } from '../../../support/planting.ts'
import * as checks from './checks.ts'
import { contract, type Trial } from './trial.ts'

/** Other names for the keys. */
const naming =
  (
    wrong: (right: RedisKeys, prefix: string, namespace: string) => Partial<RedisKeys>,
  ): PlantedBug<never>['plant'] =>
  ({ redisKeys }) => ({
    redisKeys: (prefix: string, namespace: string) => {
      const right = (redisKeys as (prefix: string, namespace: string) => RedisKeys)(prefix, namespace)
      return { ...right, ...wrong(right, prefix, namespace) }
    },
  })

/** Ways to get leases and tasks in Redis wrong, each a few words away from what is right. */
export const bugs: readonly PlantedBug<Trial>[] = [
  {
    name: 'a fence is answered by tostring',
    module: 'redis/acquire.lua',
    plant: reword(
      'acquireLua',
      [`'g ' .. digits(now)`, `'g ' .. tostring(now)`],
      [`'g ' .. digits(fence) .. ' ' .. digits(ttl)`, `'g ' .. tostring(fence) .. ' ' .. digits(ttl)`],
    ),
    caughtBy: [contract('a thousand grants of one key have a thousand safe, growing fences')],
  },
  {
    name: 'a fence is stored as a number in JSON',
    module: 'redis/task-record.lua',
    plant: reword('taskRecordLua', [`gap, digits(record.fence),`, `gap, record.fence,`]),
    caughtBy: [checks.theLogIsExact],
  },
  {
    name: 'records are read by call',
    module: 'redis/lease-record.lua',
    plant: reword('leaseRecordLua', [`try('GET', name)`, `call('GET', name)`]),
    caughtBy: [checks.aForeignKeyFailsAlone],
  },
  {
    name: 'the clock is read for each item',
    module: 'redis/acquire.lua',
    plant: reword('acquireLua', [
      `local function acquire(name, token)\n`,
      `local function acquire(name, token)\n  clock = call('TIME')\n  now = clock[1] * 1000000 + clock[2]\n`,
    ]),
    caughtBy: [checks.theClockIsReadOnce],
  },
  {
    name: 'a renewal sets the expiry, also to a sooner moment',
    module: 'redis/refresh.lua',
    plant: reword('refreshLua', ['if now + ttl > expires then', 'if true then']),
    caughtBy: [contract('a refresh never shortens the lease')],
  },
  {
    name: 'an acquire that is asked for again answers the expiry of the first time',
    module: 'redis/acquire.lua',
    plant: reword('acquireLua', ['if now + ttl > expires then expires = now + ttl end', '']),
    caughtBy: [contract('asked again with the same token, the expiry is re-armed (M29)')],
  },
  {
    name: 'a released token may acquire again',
    module: 'redis/acquire.lua',
    plant: reword('acquireLua', [`if spent == token then return 's' end`, '']),
    caughtBy: [contract('the token that was released is spent: an acquire that comes late is not granted')],
  },
  {
    name: 'a free record is kept for an hour',
    module: 'redis/lease-record.lua',
    plant: reword('leaseRecordLua', ['+ retention\n', '+ 60 * retention\n']),
    caughtBy: [checks.freeRecordsAreForgotten],
  },
  {
    name: 'a key is its own hash tag',
    module: 'redis/keys',
    plant: naming((_right, prefix, namespace) => {
      const leases = `${prefix}:${namespace}:k:`
      return { leases, lease: (key) => leases + key }
    }),
    caughtBy: [checks.oneSlotForABatch],
  },
  {
    name: 'namespace and key are joined by a colon',
    module: 'redis/keys',
    plant: naming((_right, prefix, namespace) => {
      const leases = `{${prefix}}:${namespace}:`
      return { leases, lease: (key) => leases + key }
    }),
    caughtBy: [contract('namespace and key are joined without ambiguity')],
  },
  {
    name: 'tasks and plain keys share their names',
    module: 'redis/keys',
    plant: naming((right) => ({ task: right.lease })),
    caughtBy: [checks.aTaskIsNoPlainKey],
  },
  {
    name: 'the borrowed client is subscribed itself',
    module: 'redis/extra-connection',
    plant: () => ({
      makeConnection: async (_option: string, _source: unknown, main: RedisConnection) => ({
        connection: main,
        isOwn: false,
      }),
    }),
    caughtBy: [checks.commandsGoOnWhileListening],
  },
]
