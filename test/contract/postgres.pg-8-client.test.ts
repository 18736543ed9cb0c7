import { describe } from 'vitest'
import pg from 'pg'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { postgresSubject } from './subjects/postgres.ts'

describe.skipIf(!(await isAvailable('postgres')))('pg Client', () => {
  contractFile(
    postgresSubject({
      name: 'pg 8 Client',
      push: true,
      reconnects: false,
      open: opened,
      // A client that never connected would queue calls for ever, so this one loses its server.
      openUnreachable: async (url) => {
        const proxy = await startFaultProxy(url)
        const { client } = await opened(proxy.url)
        client.on('error', () => {})
        await proxy.close()
        return { client, close: async () => {} }
      },
    }),
  )
})

async function opened(connectionString: string) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return { client, close: () => client.end() }
}
