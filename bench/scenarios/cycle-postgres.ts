import type { Scenario } from '../scenario.ts'
import { openPostgresConnections, postgresSubjects } from '../subjects/postgres.ts'
import { freshKeysOn, measureCycles } from './cycle.ts'

export const postgresCycles: readonly Scenario[] = [1, 100].map((callers) => ({
  name: `postgres.cycle.${callers}`,
  what: freshKeysOn('PostgreSQL', callers),
  async run(stores, pace) {
    const connections = await openPostgresConnections((await stores.postgres()).url, 'bench')
    const findings = await measureCycles({ subjects: postgresSubjects, connections, callers, pace })
    await connections.close()
    return findings
  },
}))
