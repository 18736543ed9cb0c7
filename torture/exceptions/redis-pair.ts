import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startSentinel } from '../../scripts/servers/redis-sentinel.mjs'
import { startRedis } from '../../scripts/servers/redis.mjs'
import type { Server } from '../../scripts/servers/server.mjs'
import { type FaultProxy, startFaultProxy } from '../../test/support/fault-proxy.ts'
import type { Stage, Strike, Upheaval, Way } from './upheaval.ts'

/** What the Sentinels call the primary. */
const primaryName = 'leasehold'

export interface RedisPairOptions {
  /** Whether the old primary goes on answering half of its clients beside the new one, or dies. */
  readonly splits: boolean
  /** `min-replicas-to-write 1`: the primary takes writes only while a replica has answered in the last two seconds. */
  readonly minReplicas: boolean
  /** How many watch; with more than one, a vote can be without a winner, and is repeated half a minute later. Default 3. */
  readonly sentinels?: number
  /** After how long without an answer they find a server dead. Default 500 ms. */
  readonly downAfterMs?: number
}

/** One of the two servers, and the ways to it. */
interface Node {
  readonly server: Server
  /** What the Sentinels see and announce. */
  readonly watched: FaultProxy
  /** Where clients of the Sentinels are led, so that these can lose sight of a server that clients still reach. */
  readonly served: FaultProxy
  /** Where the other one copies it from. */
  readonly copied: FaultProxy
}

/**
 * A primary, a replica and three Sentinels. Two of three clients follow by an address that moves to the new primary, each
 * third one asks the Sentinels. Replication can be held back, so that the replica is promoted without the last writes.
 */
export async function startRedisPair(places: number, options: RedisPairOptions): Promise<Upheaval> {
  const nodes = [await startNode(options), await startNode(options)] as const
  // They ask a primary for its replicas every ten seconds, and at once.
  await follow(nodes[1], nodes[0])
  const { sentinels: count = 3, downAfterMs = 500 } = options
  const watch = { name: primaryName, port: nodes[0].watched.port, downAfterMs }
  const sentinels = await Promise.all(
    Array.from({ length: count }, () => startSentinel({ ...watch, quorum: Math.ceil(count / 2) })),
  )
  const addresses = await Promise.all(
    Array.from({ length: places }, () => startFaultProxy(nodes[0].server.url)),
  )
  const pair = new RedisPair(nodes, sentinels, addresses, options)
  await pair.repair()
  return pair
}

async function startNode({ minReplicas }: RedisPairOptions): Promise<Node> {
  // The address that is announced has to be known before the server starts, and leads to it afterwards.
  const watched = await startFaultProxy('redis://127.0.0.1:1')
  const config = {
    'replica-announce-ip': '127.0.0.1',
    'replica-announce-port': String(watched.port),
    'repl-diskless-sync': 'yes',
    'repl-diskless-sync-delay': '0',
    'repl-ping-replica-period': '1',
    appendonly: 'yes',
    appendfsync: 'always',
    ...(minReplicas ? { 'min-replicas-to-write': '1', 'min-replicas-max-lag': '2' } : {}),
  }
  const server = await startRedis({ config })
  watched.redirect(server.url)
  const [served, copied] = await Promise.all([startFaultProxy(server.url), startFaultProxy(server.url)])
  return { server, watched, served, copied }
}

class RedisPair implements Upheaval {
  readonly #nodes: readonly [Node, Node]
  readonly #sentinels: readonly Server[]
  readonly #addresses: readonly FaultProxy[]
  readonly #splits: boolean
  #primary = 0

  constructor(
    nodes: readonly [Node, Node],
    sentinels: readonly Server[],
    addresses: readonly FaultProxy[],
    { splits }: RedisPairOptions,
  ) {
    this.#nodes = nodes
    this.#sentinels = sentinels
    this.#addresses = addresses
    this.#splits = splits
  }

  get operatorUrl(): string {
    return this.#addresses[0]?.url ?? ''
  }

  get ways(): readonly Way[] {
    const at = this.#sentinels.map(({ port }) => `at=127.0.0.1:${port}`)
    const via = this.#nodes.map(
      ({ watched, served }) => `via=127.0.0.1:${watched.port}>127.0.0.1:${served.port}`,
    )
    const asked = `sentinel://${primaryName}?${[...at, ...via].join('&')}`
    return this.#addresses.map(({ url }, index): Way => {
      if (index % 3 === 0) return { client: 'ioredis', by: 'application', url: asked }
      return { client: index % 3 === 1 ? 'node-redis' : 'ioredis', by: 'connect', url }
    })
  }

  async strike({ random, except, wait }: Stage): Promise<Strike> {
    const [old, next] = [this.#old, this.#next]
    if (!(await plays(old.server, 'master'))) {
      throw new Error('The Sentinels have changed the primary by themselves: this machine is too busy.')
    }
    const withheldMs = random.pick([200, 500, 1_000, 2_000])
    // Both ways: a replica that is heard, though it hears nothing, would count as a good one.
    await old.copied.set('blackhole')
    except()
    await wait(withheldMs)
    const lostBytes = (await offsetOf(old.server)) - (await offsetOf(next.server))
    const endedAt = performance.now()
    except()
    await old.watched.set('refuse')
    await old.copied.set('refuse')
    if (!this.#splits) {
      await old.server.kill()
      await old.served.set('refuse')
    }
    await until(() => plays(next.server, 'master'))
    const switchedAfterMs = performance.now() - endedAt
    except()
    // With a split, every second address stays with the old primary until it is known to be one no more.
    for (const [index, address] of this.#addresses.entries()) {
      if (!this.#splits || index % 2 === 0) address.redirect(next.server.url)
    }
    const splitMs = this.#splits ? random.pick([500, 2_000, 5_000]) : 0
    await wait(splitMs)
    except()
    for (const address of this.#addresses) address.redirect(next.server.url)
    if (this.#splits) await old.served.set('refuse')
    this.#primary = 1 - this.#primary
    return { withheldMs, lostBytes, switchedAfterMs, splitMs, steppedMs: 0 }
  }

  /** The old primary comes back as a replica, in step with the new one and known to the Sentinels. */
  async repair(): Promise<void> {
    const [old, next] = [this.#old, this.#next]
    await next.server.start()
    await old.copied.set('pass')
    await follow(next, old)
    await next.copied.set('pass')
    await next.served.set('pass')
    await next.watched.set('pass')
    for (const sentinel of this.#sentinels) {
      await until(async () => {
        const [primary] = (await ask(sentinel, 'SENTINEL', 'MASTERS')) as string[][]
        const [replica] = (await ask(sentinel, 'SENTINEL', 'REPLICAS', primaryName)) as string[][]
        return (
          field(primary, 'port') === String(old.watched.port) &&
          field(primary, 'flags') === 'master' &&
          field(primary, 'num-other-sentinels') === String(this.#sentinels.length - 1) &&
          field(replica, 'port') === String(next.watched.port) &&
          field(replica, 'flags') === 'slave' &&
          field(replica, 'role-reported') === 'slave' &&
          field(replica, 'master-link-status') === 'ok'
        )
      })
    }
    await until(async () => (await offsetOf(old.server)) - (await offsetOf(next.server)) < 100_000)
  }

  async close(): Promise<void> {
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.close()))
    for (const { server, watched, served, copied } of this.#nodes) {
      await Promise.all([watched.close(), served.close(), copied.close(), server.close()])
    }
    await Promise.all(this.#addresses.map((address) => address.close()))
  }

  /** The primary, or what was it until the strike. */
  get #old(): Node {
    return this.#nodes[this.#primary] as Node
  }

  get #next(): Node {
    return this.#nodes[1 - this.#primary] as Node
  }
}

async function follow(replica: Node, primary: Node): Promise<void> {
  await ask(replica.server, 'REPLICAOF', '127.0.0.1', String(primary.copied.port))
  await until(async () => /master_link_status:up/.test(await replication(replica.server)))
}

async function ask(server: Server, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(server.url, { retryStrategy: () => null, connectTimeout: 1_000 })
  client.on('error', () => {})
  try {
    return await client.call(command, ...args)
  } finally {
    client.disconnect()
  }
}

/** How far the server's own copy of the stream of changes goes. */
async function offsetOf(server: Server): Promise<number> {
  const info = await replication(server)
  const name = info.includes('role:master') ? 'master_repl_offset' : 'slave_repl_offset'
  return Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1])
}

async function plays(server: Server, role: 'master' | 'slave'): Promise<boolean> {
  return (await replication(server)).includes(`role:${role}`)
}

async function replication(server: Server): Promise<string> {
  return String(await ask(server, 'INFO', 'replication'))
}

/** Sentinels answer names and values in one list. */
function field(list: readonly string[] | undefined, wanted: string): string | undefined {
  return list?.find((_value, index) => list[index - 1] === wanted && index % 2 === 1)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 60_000
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > giveUpAt) throw new Error('Redis and its Sentinels did not get there in 60 s.')
    await sleep(20)
  }
}
