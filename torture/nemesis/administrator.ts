import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Store } from '../store.ts'

/** What is done to a store behind the library's back. */
export class Administrator {
  readonly #store: Store
  readonly #namespace: string

  constructor(store: Store, namespace: string) {
    this.#store = store
    this.#namespace = namespace
  }

  async redis(command: string, ...args: string[]): Promise<unknown> {
    const { Redis } = await import('ioredis')
    const client = new Redis(this.#store.url, { retryStrategy: () => null, connectTimeout: 1_000 })
    client.on('error', () => {})
    try {
      return await client.call(command, ...args)
    } finally {
      client.disconnect()
    }
  }

  async deleteLease(key: string): Promise<void> {
    const namespace = this.#namespace
    switch (this.#store.driver) {
      case 'redis':
        await this.redis('DEL', `{leasehold:${namespace}}:k:${key}`)
        return
      case 'postgres':
        await this.#postgres('delete from leasehold_leases where namespace = $1 and key = $2', [
          namespace,
          key,
        ])
        return
      case 'sqlite': {
        const database = await this.#openFile()
        database.prepare('delete from leasehold_lease where namespace = ? and key = ?').run(namespace, key)
        database.close()
      }
    }
  }

  /** Everything is thrown away: the tables, or all keys. */
  async empty(): Promise<void> {
    switch (this.#store.driver) {
      case 'redis':
        await this.redis('FLUSHALL')
        return
      case 'postgres':
        await this.#postgres(
          'drop table if exists leasehold_leases, leasehold_tasks, leasehold_runs, leasehold_namespaces',
        )
        return
      case 'sqlite': {
        const database = await this.#openFile()
        const tables = database
          .prepare("select name from sqlite_master where type = 'table' and name like 'leasehold%'")
          .pluck()
          .all() as string[]
        database.transaction(() => tables.forEach((table) => database.exec(`drop table "${table}"`)))()
        database.close()
      }
    }
  }

  async killClients(which: 'all' | 'subscribers'): Promise<void> {
    if (this.#store.driver === 'redis') {
      await this.redis('CLIENT', 'KILL', 'TYPE', 'pubsub')
      if (which === 'all') await this.redis('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      return
    }
    const listening = which === 'subscribers' ? "and query ilike '%listen%'" : ''
    await this.#postgres(
      `select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() ${listening}`,
    )
  }

  /** What Redis wrote down is gone; it is not running. */
  forgetAll(): void {
    const folder = join(this.#store.server?.dataFolder ?? '/nowhere', 'appendonlydir')
    rmSync(folder, { recursive: true, force: true })
  }

  /** Another process writes for a long time; returns how it ends. */
  async lockFile(): Promise<() => void> {
    const database = await this.#openFile()
    database.exec('begin immediate')
    return () => {
      database.exec('rollback')
      database.close()
    }
  }

  async #openFile() {
    const { default: Database } = await import('better-sqlite3')
    return new Database(this.#store.url.replace(/^sqlite:/, ''), { timeout: 2_000 })
  }

  async #postgres(sql: string, values: readonly string[] = []): Promise<void> {
    const { default: pg } = await import('pg')
    const client = new pg.Client({ connectionString: this.#store.url, connectionTimeoutMillis: 1_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query(sql, [...values])
    } finally {
      await client.end().catch(() => {})
    }
  }
}
