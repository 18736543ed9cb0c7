import type { PreparedDatabase } from './clients.ts'

/**
 * How surely a commit survives a power cut. `'lease'` may be forgotten: all holders on this host are gone too then.
 * `'durable'` may not: the mail of a decided slot must not go out again after the boot.
 */
export type Durability = 'lease' | 'durable'

/** The settings of a connection while a call of ours runs on it. */
export interface Pragmas {
  /** Sets them, outside any transaction; the answered function puts back what belongs to the connection's owner. */
  set(durability: Durability): () => void
}

// Levels of `pragma synchronous`. In WAL mode NORMAL loses the last commits at a power cut, and never damages the file.
const normal = 1
const full = 2

/** The settings of a connection that we opened; made WAL here if the file system can do it, and left as set last. */
export function ownPragmas(database: PreparedDatabase): Pragmas {
  database.exec('pragma busy_timeout = 0')
  const isWal = journalMode(database) === 'wal' || switchToWal(database)
  let current: number | null = null
  return {
    set(durability) {
      const wanted = durability === 'durable' || !isWal ? full : normal
      if (current !== wanted) database.exec(`pragma synchronous = ${wanted}`)
      current = wanted
      return () => {}
    },
  }
}

/** The settings of the user's connection: theirs again after each call. The journal mode is left alone. */
export function borrowedPragmas(database: PreparedDatabase): Pragmas {
  const isWal = journalMode(database) === 'wal'
  return {
    set(durability) {
      const synchronous = Number(database.get('pragma synchronous')?.['synchronous'])
      const timeout = Number(database.get('pragma busy_timeout')?.['timeout'])
      const lease = isWal ? normal : synchronous
      const wanted = durability === 'durable' ? Math.max(synchronous, full) : lease
      if (wanted !== synchronous) database.exec(`pragma synchronous = ${wanted}`)
      if (timeout !== 0) database.exec('pragma busy_timeout = 0')
      return () => {
        if (wanted !== synchronous) database.exec(`pragma synchronous = ${synchronous}`)
        if (timeout !== 0) database.exec(`pragma busy_timeout = ${timeout}`)
      }
    },
  }
}

function journalMode(database: PreparedDatabase): unknown {
  return database.get('pragma journal_mode')?.['journal_mode']
}

/** False where there is no WAL: in memory, or on a file system without shared memory. All works then, but slower. */
function switchToWal(database: PreparedDatabase): boolean {
  return database.get('pragma journal_mode = wal')?.['journal_mode'] === 'wal'
}
