import { describe } from 'vitest'
import pg from 'pg'
import { nowhere, postgresSubject } from '../contract/subjects/postgres.ts'
import { isAvailable } from '../support/stores.ts'
import { modelFile } from './model-file.ts'

describe.skipIf(!(await isAvailable('postgres')))('postgres', () => {
  const open = async (connectionString: string) => {
    const client = new pg.Pool({ connectionString, max: 4, connectionTimeoutMillis: 2_000 })
    return { client, close: () => client.end() }
  }
  const openUnreachable = () => open(nowhere)
  const subject = postgresSubject({ name: 'pg Pool', push: true, reconnects: true, open, openUnreachable })
  modelFile(subject, { histories: 12, moves: 40 })
})
