import type { Scenario } from '../scenario.ts'
import { openRedisConnections, redisSubjects } from '../subjects/redis.ts'
import { freshKeysOn, measureCycles } from './cycle.ts'

export const redisCycles: readonly Scenario[] = [1, 100, 1_000].map((callers) => ({
  name: `redis.cycle.${callers}`,
  what: freshKeysOn('Redis', callers),
  async run(stores, pace) {
    const connections = await openRedisConnections((await stores.redis()).url)
    // What one subject leaves behind is not for the others to expire.
    const before = () => connections.ioredis.flushall()
    const findings = await measureCycles({ subjects: redisSubjects, connections, callers, pace, before })
    await connections.close()
    return findings
  },
}))
