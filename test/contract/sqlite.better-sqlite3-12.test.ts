import Database from 'better-sqlite3'
import { contractFile } from './contract-file.ts'
import { sqliteDatabaseSubject } from './subjects/sqlite.ts'

contractFile(
  sqliteDatabaseSubject('sqlite / better-sqlite3 12', (path) => new Database(path, { timeout: 2_000 })),
)
