import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContractSubject, RawStore } from 'leasehold/testing'
import { sqliteDriver, type SqliteDatabase } from 'leasehold/sqlite'

export type OpenDatabase = (path: string) => SqliteDatabase

/** Two drivers that each open the file by themselves. The raw look goes through a connection of its own. */
export function sqlitePathSubject(name: string, openRaw: OpenDatabase): ContractSubject {
  return sqliteSubject(name, openRaw, (path) => ({ driver: sqliteDriver({ path }), close: () => {} }))
}

/** Two drivers on databases that the test opened, as an application would that uses the file itself. */
export function sqliteDatabaseSubject(name: string, open: OpenDatabase): ContractSubject {
  return sqliteSubject(name, open, (path) => {
    const database = open(path)
    return { driver: sqliteDriver({ database }), close: () => database.close() }
  })
}

function sqliteSubject(
  name: string,
  openRaw: OpenDatabase,
  openDriver: (path: string) => { driver: ReturnType<typeof sqliteDriver>; close(): unknown },
): ContractSubject {
  return {
    name,
    expects: {
      push: false,
      clock: 'host',
      keepsFreeRecords: true,
      raw: ['forgetKey', 'forgetTask', 'readFence', 'writeFence', 'countKeys', 'disturb'],
      unreachable: true,
    },
    open: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'leasehold-contract-'))
      const path = join(folder, 'locks.db')
      const [first, second] = [openDriver(path), openDriver(path)]
      // The tables are made by the first call, and the raw connection needs them.
      const session = first.driver.open('set-up')
      await session.locks.peek(['key'], { attempt: 1, lockedRows: 'wait' })
      const raw = openRaw(path)
      return {
        first: first.driver,
        second: second.driver,
        unreachable: sqliteDriver({ path: join(folder, 'no-such-folder', 'locks.db') }),
        raw: rawSqlite(raw),
        close: async () => {
          await session.close()
          for (const opened of [first, second, raw]) opened.close()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

function rawSqlite(database: SqliteDatabase): RawStore {
  const run = (sql: string, ...values: (string | number)[]): unknown => database.prepare(sql).run(...values)
  const get = (sql: string, ...values: string[]): Record<string, unknown> | undefined =>
    database.prepare(sql).get(...values) as Record<string, unknown> | undefined
  const ofKey = 'leasehold_lease where namespace = ? and key = ?'
  return {
    forgetKey: async (namespace, key) => {
      run(`delete from ${ofKey}`, namespace, key)
    },
    forgetTask: async (namespace, task) => {
      run('delete from leasehold_task where namespace = ? and task = ?', namespace, task)
    },
    readFence: async (namespace, key) => {
      const row = get(`select cast(fence as text) as fence from ${ofKey}`, namespace, key)
      return row === undefined ? null : (row['fence'] as string)
    },
    writeFence: async (namespace, key, fence) => {
      run('update leasehold_lease set fence = ? where namespace = ? and key = ?', fence, namespace, key)
    },
    countKeys: async (namespace) =>
      Number(get('select count(*) as count from leasehold_lease where namespace = ?', namespace)?.['count']),
    // Changes the schema, so that prepared statements have to be prepared anew, and moves the log into the file.
    disturb: async () => {
      database.exec('create table disturbance (id integer); drop table disturbance')
      database.exec('pragma wal_checkpoint(truncate)')
    },
  }
}
