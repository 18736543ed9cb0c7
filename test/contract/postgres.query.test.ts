import { describe } from 'vitest'
import pg from 'pg'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { nowhere, postgresSubject } from './subjects/postgres.ts'

describe.skipIf(!(await isAvailable('postgres')))('a bare query function', () => {
  contractFile(
    postgresSubject({
      name: 'bare query',
      push: false,
      reconnects: true,
      open: async (url) => opened(url),
      openUnreachable: async () => opened(nowhere),
    }),
  )
})

/** What is left of a client inside an ORM: something that runs a statement. */
function opened(connectionString: string) {
  const pool = new pg.Pool({ connectionString, max: 4, connectionTimeoutMillis: 2_000 })
  pool.on('error', () => {})
  const client = { query: async (text: string, values: string[]) => (await pool.query(text, values)).rows }
  return { client, close: () => pool.end() }
}
