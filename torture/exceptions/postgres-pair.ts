import { query } from '../../scripts/servers/postgres-wire.mjs'
import { startPostgres } from '../../scripts/servers/postgres.mjs'
import type { Server } from '../../scripts/servers/server.mjs'
import { type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts'
import type { Stage, Strike, Upheaval, Way } from './upheaval.ts'

export interface PostgresPairOptions {
  /** Whether the old primary goes on answering half of its clients beside the new one, or dies. */
  readonly splits: boolean
  /** `synchronous_standby_names` is set and `synchronous_commit` is `remote_apply`. */
  readonly synchronous: boolean
}

/**
 * A primary and a streaming replica. Each second client knows both addresses and looks for the one that takes writes
 * (postgres.js can), the others have one address that moves. What the primary writes can be held back from the replica.
 */
export async function startPostgresPair(places: number, options: PostgresPairOptions): Promise<Upheaval> {
  const first = await startNode()
  const copied = await startFaultProxy(first.url)
  const addresses = await Promise.all(Array.from({ length: places }, () => startFaultProxy(first.url)))
  const homes = [await startFaultProxy(first.url), await startFaultProxy(first.url)] as const
  const pair = new PostgresPair(first, copied, addresses, homes, options)
  await pair.repair()
  return pair
}

function startNode(replicaOf?: number): Promise<Server> {
  const config = { max_connections: '150', wal_keep_size: '256MB' }
  return startPostgres({ config, ...(replicaOf === undefined ? {} : { replicaOf }) })
}

class PostgresPair implements Upheaval {
  readonly #options: PostgresPairOptions
  readonly #copied: FaultProxy
  readonly #addresses: readonly FaultProxy[]
  /** Fixed addresses of the two hosts; the primary is at the one with this index. */
  readonly #homes: readonly [FaultProxy, FaultProxy]
  #home = 0
  #primary: Server
  #replica: Server | null = null
  /** What was the primary, until it is thrown away. */
  #old: Server | null = null

  constructor(
    primary: Server,
    copied: FaultProxy,
    addresses: readonly FaultProxy[],
    homes: readonly [FaultProxy, FaultProxy],
    options: PostgresPairOptions,
  ) {
    this.#primary = primary
    this.#copied = copied
    this.#addresses = addresses
    this.#homes = homes
    this.#options = options
  }

  get operatorUrl(): string {
    return this.#addresses[0]?.url ?? ''
  }

  get ways(): readonly Way[] {
    const hosts = this.#homes.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const either = `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write`
    return this.#addresses.map(({ url }, index): Way => {
      if (index % 2 === 1) return { client: 'postgres.js', by: 'application', url: either }
      return { client: 'pg', by: index % 4 === 0 ? 'connect' : 'application', url }
    })
  }

  async strike({ random, except, wait }: Stage): Promise<Strike> {
    const [old, next] = [this.#primary, this.#replica]
    if (next === null) throw new Error('There is no replica.')
    const withheldMs = random.pick([200, 500, 1_000, 2_000])
    await this.#copied.set('hold-answers')
    except()
    await wait(withheldMs)
    const lostBytes = await bytesBetween(next, old)
    const endedAt = performance.now()
    except()
    await this.#copied.set('refuse')
    if (!this.#options.splits) await old.kill()
    // It replays what it has, and takes writes.
    await query({ port: next.port, sql: 'select pg_promote(true, 60)' })
    const switchedAfterMs = performance.now() - endedAt
    except()
    this.#home = 1 - this.#home
    this.#homes[this.#home]?.redirect(next.url)
    for (const [index, address] of this.#addresses.entries()) {
      if (!this.#options.splits || index % 4 === 0) address.redirect(next.url)
    }
    const splitMs = this.#options.splits ? random.pick([500, 2_000, 5_000]) : 0
    await wait(splitMs)
    except()
    for (const address of this.#addresses) address.redirect(next.url)
    await this.#homes[1 - this.#home]?.set('refuse')
    this.#old = old
    this.#primary = next
    this.#replica = null
    return { withheldMs, lostBytes, switchedAfterMs, splitMs, steppedMs: 0 }
  }

  /** A new replica is copied from the primary and follows it; the old primary, which knows another past, is gone. */
  async repair(): Promise<void> {
    await this.#old?.close()
    this.#old = null
    const primary = this.#primary
    this.#copied.redirect(primary.url)
    await this.#copied.set('pass')
    const replica = await startNode(this.#copied.port)
    this.#replica = replica
    const other = this.#homes[1 - this.#home]
    other?.redirect(replica.url)
    await other?.set('pass')
    if (!this.#options.synchronous) return
    // Only now: the replica was copied without, so that it will not wait for another one when it is promoted.
    for (const sql of [
      "alter system set synchronous_commit = 'remote_apply'",
      "alter system set synchronous_standby_names = '*'",
      'select pg_reload_conf()',
    ]) {
      await query({ port: primary.port, sql })
    }
  }

  async close(): Promise<void> {
    const proxies = [this.#copied, ...this.#homes, ...this.#addresses]
    await Promise.all(proxies.map((proxy) => proxy.close()))
    for (const server of [this.#old, this.#replica, this.#primary]) await server?.close()
  }
}

/** How much the one has written that the other has not applied. */
async function bytesBetween(behind: Server, ahead: Server): Promise<number> {
  const [applied] = await query({ port: behind.port, sql: 'select pg_last_wal_replay_lsn()' })
  const [bytes] = await query({
    port: ahead.port,
    sql: `select pg_wal_lsn_diff(pg_current_wal_lsn(), '${applied}')::bigint::text`,
  })
  return Number(bytes)
}
