import { describe, it } from 'vitest'
import Database from 'better-sqlite3'
import { contractFile } from './contract-file.ts'
import { sqliteDatabaseSubject } from './subjects/sqlite.ts'

const obstacle = obstacleToOpening()

if (obstacle === undefined) {
  contractFile(
    sqliteDatabaseSubject('sqlite / better-sqlite3 12', (path) => new Database(path, { timeout: 2_000 })),
  )
} else {
  describe('driver contract: sqlite / better-sqlite3 12', () => {
    it.skip(`better-sqlite3 is not built for Node.js ${process.version}: ${obstacle}`, () => {})
  })
}

/** A build for one Node.js does not load in another; that is fine where `node:sqlite` serves, and a failure elsewhere. */
function obstacleToOpening(): string | undefined {
  try {
    new Database(':memory:').close()
    return undefined
  } catch (error) {
    if (process.getBuiltinModule('node:sqlite') === undefined) throw error
    return String(error)
  }
}
