import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import { confirmed, type Mutex, noWaiting } from '../mutex.ts'

/** Per key: grants it, or says that it is held. With a fence from the server's clock, as a lease has to have. */
const takeAll = `
local now, answers = redis.call('time'), {}
local fence = now[1] .. string.format('%06d', now[2])
for i, key in ipairs(KEYS) do
  answers[i] = redis.call('set', key, ARGV[i] .. fence, 'NX', 'PX', 30000) and fence or ''
end
return answers`

/** Per key: frees it if the token is the one that was granted. */
const freeAll = `
local answers = {}
for i, key in ipairs(KEYS) do
  local value = redis.call('get', key)
  answers[i] = value and string.sub(value, 1, #ARGV[i]) == ARGV[i] and redis.call('del', key) or 0
end
return answers`

const mostInFlight = 2
const mostInBatch = 500

type Send = (keys: readonly string[], tokens: readonly string[]) => Promise<unknown[]>

interface Item {
  readonly key: string
  readonly token: string
  readonly settle: (answer: unknown) => void
  readonly fail: (error: unknown) => void
}

/**
 * What batching by itself can reach: the calls of one tick in one script, no more than two of them in the air, and nothing
 * of what makes a lease. No product: it knows neither failures nor renewals.
 */
export function batchedByHand(client: Redis): Mutex {
  client.defineCommand('takeAll', { lua: takeAll })
  client.defineCommand('freeAll', { lua: freeAll })
  const scripted = client as unknown as Record<
    'takeAll' | 'freeAll',
    (count: number, ...args: string[]) => Promise<unknown[]>
  >
  const take = joined((keys, tokens) => scripted.takeAll(keys.length, ...keys, ...tokens))
  const free = joined((keys, tokens) => scripted.freeAll(keys.length, ...keys, ...tokens))
  return {
    async tryAcquire(key) {
      const token = randomUUID()
      if ((await take(key, token)) === '') return null
      return confirmed(async () => (await free(key, token)) === 1)
    },
    acquire: noWaiting,
    close: async () => {},
  }
}

/** Joins the calls of one tick, and those that come while enough are in the air. */
function joined(send: Send): (key: string, token: string) => Promise<unknown> {
  const queue: Item[] = []
  let inFlight = 0
  let isPlanned = false
  const flush = (): void => {
    isPlanned = false
    while (inFlight < mostInFlight && queue.length > 0) {
      const batch = queue.splice(0, mostInBatch)
      inFlight += 1
      void send(
        batch.map(({ key }) => key),
        batch.map(({ token }) => token),
      )
        .then(
          (answers) => batch.forEach(({ settle }, index) => settle(answers[index])),
          (error: unknown) => batch.forEach(({ fail }) => fail(error)),
        )
        .finally(() => {
          inFlight -= 1
          flush()
        })
    }
  }
  return (key, token) =>
    new Promise((settle, fail) => {
      queue.push({ key, token, settle, fail })
      if (isPlanned) return
      isPlanned = true
      process.nextTick(flush)
    })
}
