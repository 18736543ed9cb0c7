import type { PreparedDatabase } from '../../../../src/drivers/sqlite/clients.ts'
import type { NamespaceStatements } from '../../../../src/drivers/sqlite/namespace.sql.ts'
import type { Pragmas } from '../../../../src/drivers/sqlite/pragmas.ts'
import type { SqliteTables } from '../../../../src/drivers/sqlite/schema.sql.ts'
import type { PlantedBug } from '../../../support/planting.ts'
import * as checks from './checks.ts'

type OpenPragmas = (database: PreparedDatabase) => Pragmas

/** Ways to get SQLite wrong. What a lease is, is planted in the contract: the rules are those of the in-process driver. */
export const bugs: readonly PlantedBug<checks.Trial>[] = [
  {
    name: 'nobody remembers the greatest fence of a namespace',
    module: 'sqlite/namespace.sql',
    plant: ({ namespaceStatements }) => ({
      namespaceStatements: (tables: SqliteTables): NamespaceStatements => ({
        ...(namespaceStatements as (tables: SqliteTables) => NamespaceStatements)(tables),
        raiseFence: `update ${tables.namespace} set fence = fence where namespace = ? and ? < 0`,
      }),
    }),
    caughtBy: [checks.noFenceIsRepeated],
  },
  {
    name: 'SQLite itself waits for a file that is locked',
    module: 'sqlite/pragmas',
    plant: ({ ownPragmas }) => ({
      ownPragmas: (database: PreparedDatabase) => {
        const pragmas = (ownPragmas as OpenPragmas)(database)
        database.exec('pragma busy_timeout = 250')
        return pragmas
      },
    }),
    caughtBy: [checks.nothingBlocksTheLoop],
  },
  {
    name: 'slots are committed as leases are',
    module: 'sqlite/pragmas',
    plant: ({ borrowedPragmas }) => ({
      borrowedPragmas: (database: PreparedDatabase): Pragmas => {
        const pragmas = (borrowedPragmas as OpenPragmas)(database)
        return { set: () => pragmas.set('lease') }
      },
    }),
    caughtBy: [checks.slotsSurviveAPowerCut],
  },
]
