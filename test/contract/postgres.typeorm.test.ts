import { DataSource } from 'typeorm'
import { describe } from 'vitest'
import { isAvailable } from '../support/stores.ts'
import { contractFile } from './contract-file.ts'
import { nowhere, postgresSubject } from './subjects/postgres.ts'

describe.skipIf(!(await isAvailable('postgres')))('a DataSource of TypeORM', () => {
  contractFile(
    postgresSubject({
      name: 'typeorm 1 DataSource',
      push: true,
      reconnects: true,
      open: async (url) => {
        const source = await dataSource(url).initialize()
        return { client: source, close: () => source.destroy() }
      },
      openUnreachable: async () => ({ client: dataSource(nowhere), close: async () => {} }),
    }),
  )
})

function dataSource(url: string): DataSource {
  return new DataSource({ type: 'postgres', url, poolSize: 4, connectTimeoutMS: 2_000, logging: false })
}
