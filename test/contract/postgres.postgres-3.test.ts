import { describe } from 'vitest'
import postgres from 'postgres'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { nowhere, postgresSubject } from './subjects/postgres.ts'

describe.skipIf(!(await isAvailable('postgres')))('postgres.js', () => {
  contractFile(
    postgresSubject({
      name: 'postgres.js 3',
      push: true,
      reconnects: true,
      open: async (url) => opened(url),
      openUnreachable: async () => opened(nowhere),
    }),
  )
})

function opened(url: string) {
  const client = postgres(url, { max: 4, connect_timeout: 2, onnotice: () => {} })
  return { client, close: () => client.end({ timeout: 1 }) }
}
