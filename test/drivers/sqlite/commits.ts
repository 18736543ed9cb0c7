import type { SqliteDatabase } from '../../../src/drivers/sqlite/index.ts'

/** Levels of `pragma synchronous`. */
export const normal = 1
export const full = 2

export function synchronous(database: SqliteDatabase): number {
  return (database.prepare('pragma synchronous').get() as { synchronous: number }).synchronous
}

/** The same database, which notes the level of `synchronous` at each commit. */
export function watchCommits(database: SqliteDatabase): {
  readonly watched: SqliteDatabase
  readonly levels: () => number[]
} {
  let seen: number[] = []
  const watched: SqliteDatabase = {
    exec(sql) {
      if (/^commit/i.test(sql)) seen.push(synchronous(database))
      return database.exec(sql)
    },
    prepare: (sql) => database.prepare(sql),
    close: () => database.close(),
  }
  return {
    watched,
    levels() {
      const levels = seen
      seen = []
      return levels
    },
  }
}
