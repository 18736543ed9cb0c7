import { loadSqliteLibrary } from '../../src/drivers/sqlite/clients.ts'
import { contractFile } from './contract-file.ts'
import { sqlitePathSubject } from './subjects/sqlite.ts'

const library = loadSqliteLibrary()

contractFile(sqlitePathSubject(`sqlite / path (${library.name})`, (path) => library.open(path)))
