import { assertExcludes, cycle } from '../mutex.ts'
import { inTurns } from '../rounds.ts'
import type { Scenario } from '../scenario.ts'
import { openPostgresConnections, postgresSubjects } from '../subjects/postgres.ts'

export const postgresCycles: readonly Scenario[] = [1, 100].map((callers) => ({
  name: `postgres.cycle.${callers}`,
  what: `acquire and release of fresh keys on PostgreSQL, ${callers} concurrent caller${callers === 1 ? '' : 's'}`,
  async run(stores, pace) {
    const connections = await openPostgresConnections((await stores.postgres()).url, 'bench')
    const mutexes = []
    for (const subject of postgresSubjects)
      mutexes.push({ ...subject, mutex: await subject.open(connections) })
    for (const { name, mutex } of mutexes) await assertExcludes(name, mutex)
    const turns = mutexes.map(({ name, mutex }) => ({ name, run: (ms: number) => cycle(mutex, callers, ms) }))
    const values = await inTurns(turns, pace)
    for (const { mutex } of mutexes) await mutex.close()
    await connections.close()
    return postgresSubjects.map(({ name, role }) => ({
      subject: name,
      role,
      metric: 'opsPerSecond',
      values: values.get(name) ?? [],
    }))
  },
}))
