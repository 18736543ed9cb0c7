import { describe, it } from 'vitest'
import type { SqliteDatabase } from 'leasehold/sqlite'
import { contractFile } from './contract-file.ts'
import { sqliteDatabaseSubject } from './subjects/sqlite.ts'

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqliteDatabase
}

// From Node.js 22.13 on.
const sqlite = process.getBuiltinModule('node:sqlite') as unknown as NodeSqlite | undefined

if (sqlite === undefined) {
  describe('driver contract: sqlite / node:sqlite', () => {
    it.skip(`Node.js ${process.version} has no node:sqlite`, () => {})
  })
} else {
  contractFile(
    sqliteDatabaseSubject('sqlite / node:sqlite', (path) => {
      const database = new sqlite.DatabaseSync(path)
      database.exec('pragma busy_timeout = 2000')
      return database
    }),
  )
}
