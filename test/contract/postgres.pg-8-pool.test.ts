import { describe } from 'vitest'
import pg from 'pg'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { nowhere, postgresSubject } from './subjects/postgres.ts'

describe.skipIf(!(await isAvailable('postgres')))('pg Pool', () => {
  contractFile(
    postgresSubject({
      name: 'pg 8 Pool',
      push: true,
      reconnects: true,
      open: async (url) => opened(url),
      openUnreachable: async () => opened(nowhere),
    }),
  )
})

function opened(connectionString: string) {
  const client = new pg.Pool({ connectionString, max: 4, connectionTimeoutMillis: 2_000 })
  return { client, close: () => client.end() }
}
