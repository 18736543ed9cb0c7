import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../scripts/servers/postgres.mjs'
import { startRedis } from '../scripts/servers/redis.mjs'
import type { Server } from '../scripts/servers/server.mjs'

/** The servers of one run, each started when it is first asked for, with throw-away data. */
export class Stores {
  #redis: Promise<Server> | undefined
  #postgres: Promise<Server> | undefined
  #folder: string | undefined

  redis(): Promise<Server> {
    this.#redis ??= startRedis()
    return this.#redis
  }

  /** With the default durability: a commit waits for the disk. */
  postgres(): Promise<Server> {
    this.#postgres ??= startPostgres({ config: { log_line_prefix: '%a|', log_parameter_max_length: '0' } })
    return this.#postgres
  }

  /** For files, on the disk that the servers use. */
  folder(): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
    return this.#folder
  }

  async close(): Promise<void> {
    for (const server of [this.#redis, this.#postgres]) await (await server)?.close()
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true })
  }
}
