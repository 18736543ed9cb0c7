import { loadSqliteLibrary } from '../../src/drivers/sqlite/clients.ts'
import { sqlitePathSubject } from '../contract/subjects/sqlite.ts'
import { modelFile } from './model-file.ts'

const library = loadSqliteLibrary()

modelFile(
  sqlitePathSubject(`sqlite (${library.name})`, (path) => library.open(path)),
  { histories: 20, moves: 40 },
)
