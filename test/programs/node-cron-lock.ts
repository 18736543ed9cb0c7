// What the pages of node-cron 4 advise for a fleet: one lock per fire, taken with SET NX PX, and given back when the run
// has ended.
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'

const freeIfMine = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

/** A run coordinator by that approach. */
export function lockPerFire(
  redis: Redis,
  prefix: string,
): { shouldRun(key: string, ttlMs: number): Promise<boolean>; onComplete(key: string): Promise<void> } {
  const tokens = new Map<string, string>()
  return {
    async shouldRun(key, ttlMs) {
      const token = randomUUID()
      const isMine = (await redis.set(prefix + key, token, 'PX', ttlMs, 'NX')) === 'OK'
      if (isMine) tokens.set(key, token)
      return isMine
    },
    async onComplete(key) {
      const token = tokens.get(key)
      tokens.delete(key)
      if (token !== undefined) await redis.eval(freeIfMine, 1, prefix + key, token)
    },
  }
}
