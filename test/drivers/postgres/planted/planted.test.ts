import { afterAll, beforeAll, describe } from 'vitest'
import { testPlanted } from '../../../support/planting.ts'
import { isAvailable } from '../../../support/stores.ts'
import { type Database, freshDatabase } from '../database.ts'
import { bugs } from './bugs.ts'
import { stopOwnServer } from './own-server.ts'

describe.skipIf(!(await isAvailable('postgres')))('the PostgreSQL driver', () => {
  let database: Database
  beforeAll(async () => (database = await freshDatabase()))
  afterAll(async () => {
    await database[Symbol.asyncDispose]()
    await stopOwnServer()
  })

  testPlanted({
    bugs,
    load: () => import('../../../../src/drivers/postgres/index.ts'),
    trial: ({ postgresDriver }) => ({ postgresDriver, database }),
  })
})
