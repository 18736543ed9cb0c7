import type { postgresDriver } from 'leasehold/postgres'
import { rawPostgres } from '../../../contract/subjects/postgres.ts'
import { type Check, contractCheck } from '../../../support/planting.ts'
import type { Database } from '../database.ts'

/** The driver under trial, as it is or with a bug in it, and a database for it. */
export interface Trial {
  readonly postgresDriver: typeof postgresDriver
  readonly database: Database
}

/** A behaviour of the contract suite, on two pools. */
export const contract: (name: string) => Check<Trial> = contractCheck<Trial>(
  { push: false, clock: 'server', keepsFreeRecords: true, raw: ['lockKey', 'readFence'], unreachable: false },
  async ({ postgresDriver, database }) => {
    const driver = () => postgresDriver(database.pool({ max: 2 }), { listen: false })
    const operator = database.pool({ max: 2 })
    return { first: driver(), second: driver(), raw: rawPostgres(operator), close: async () => {} }
  },
)
