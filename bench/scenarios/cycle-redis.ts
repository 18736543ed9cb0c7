import { assertExcludes, cycle } from '../mutex.ts'
import { inTurns } from '../rounds.ts'
import type { Scenario } from '../scenario.ts'
import { openRedisConnections, redisSubjects } from '../subjects/redis.ts'

export const redisCycles: readonly Scenario[] = [1, 100, 1_000].map((callers) => ({
  name: `redis.cycle.${callers}`,
  what: `acquire and release of fresh keys on Redis, ${callers} concurrent caller${callers === 1 ? '' : 's'}`,
  async run(stores, pace) {
    const connections = await openRedisConnections((await stores.redis()).url)
    const mutexes = await Promise.all(
      redisSubjects.map(async (subject) => ({ ...subject, mutex: await subject.open(connections) })),
    )
    for (const { name, mutex } of mutexes) await assertExcludes(name, mutex)
    const turns = mutexes.map(({ name, mutex }) => ({ name, run: (ms: number) => cycle(mutex, callers, ms) }))
    // What one subject leaves behind is not for the others to expire.
    const values = await inTurns(turns, pace, () => connections.ioredis.flushall())
    for (const { mutex } of mutexes) await mutex.close()
    await connections.close()
    return redisSubjects.map(({ name, role }) => ({
      subject: name,
      role,
      metric: 'opsPerSecond',
      values: values.get(name) ?? [],
    }))
  },
}))
