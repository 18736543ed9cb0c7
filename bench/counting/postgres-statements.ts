import { setTimeout as sleep } from 'node:timers/promises'
import { query } from '../../scripts/servers/postgres-wire.mjs'
import type { Server } from '../../scripts/servers/server.mjs'

/** Counts the statements that clients have a PostgreSQL execute, by the application name of their connections. */
export interface PostgresStatementCount {
  /** Since the last reset. */
  of(application: string): number
  reset(): void
  close(): Promise<void>
}

/**
 * Counts by the server's log of statements, which is on only while something is counted and nothing is timed. Statistics of
 * the database don't do: backends report to them at most once a second, idle ones later still.
 */
export async function countPostgresStatements(server: Server): Promise<PostgresStatementCount> {
  await setLogging(server, 'all')
  let from = server.log.length
  return {
    of: (application) => {
      const logged = `${application}|LOG:  `
      const lines = server.log.slice(from).split('\n')
      return lines.filter((line) => line.startsWith(logged) && /LOG: {2}(statement|execute )/.test(line))
        .length
    },
    reset: () => (from = server.log.length),
    close: () => setLogging(server, 'none'),
  }
}

async function setLogging({ port }: Server, what: 'all' | 'none'): Promise<void> {
  await query({ port, sql: `alter system set log_statement = '${what}'` })
  await query({ port, sql: 'select pg_reload_conf()' })
  // A backend looks at its settings when the signal has reached it.
  await sleep(200)
}
