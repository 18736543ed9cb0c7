import { DriverFault } from '../../core/errors.ts'
import type { CallOptions } from '../../driver/driver.ts'
import type {
  AcquireAnswer,
  AcquireRequest,
  LeaseRecord,
  LockDriver,
  PurgeRequest,
  RefreshAnswer,
  RefreshRequest,
  ReleaseAnswer,
  ReleaseRequest,
  RevokeAnswer,
  RevokeRequest,
  ScanPage,
  ScanRequest,
} from '../../driver/lock-driver.ts'
import { acquireLua } from './acquire.lua.ts'
import type { RedisConnection } from './clients.ts'
import { assertReachable, itemFault } from './faults.ts'
import type { RedisKeys } from './keys.ts'
import { peekLua } from './peek.lua.ts'
import { refreshLua } from './refresh.lua.ts'
import { releaseLua } from './release.lua.ts'
import { revokeLua } from './revoke.lua.ts'
import { scanLua } from './scan.lua.ts'
import { runScript, script, type Reply, type Script } from './scripts.ts'
import { toMicros, Words } from './words.ts'

const scripts = {
  acquire: script(acquireLua),
  refresh: script(refreshLua),
  release: script(releaseLua),
  revoke: script(revokeLua),
  peek: script(peekLua),
  scan: script(scanLua),
}

/** Leases of plain keys in Redis: every call is one script. */
export class RedisLocks implements LockDriver {
  readonly #connect: (call: CallOptions) => Promise<RedisConnection>
  readonly #keys: RedisKeys
  readonly #retention: string

  constructor(
    connect: (call: CallOptions) => Promise<RedisConnection>,
    keys: RedisKeys,
    retentionMs: number,
  ) {
    this.#connect = connect
    this.#keys = keys
    this.#retention = String(retentionMs)
  }

  async acquire(requests: readonly AcquireRequest[], call: CallOptions): Promise<readonly AcquireAnswer[]> {
    const args: string[] = []
    let before: AcquireRequest | undefined
    for (const request of requests) {
      assertToken(request.token)
      args.push(request.token, isWantedAlike(request, before) ? '' : wish(request))
      before = request
    }
    const replies = await this.#ask(scripts.acquire, requests, args, call)
    return requests.map(({ key }, index) => this.#acquireAnswer(key, replies[index]))
  }

  async refresh(requests: readonly RefreshRequest[], call: CallOptions): Promise<readonly RefreshAnswer[]> {
    const args = requests.flatMap(({ token, ttlMs }, index) => [
      token,
      ttlMs === requests[index - 1]?.ttlMs ? '' : toMicros(ttlMs),
    ])
    const replies = await this.#ask(scripts.refresh, requests, args, call)
    return requests.map(({ key }, index) => this.#refreshAnswer(key, replies[index]))
  }

  async release(requests: readonly ReleaseRequest[], call: CallOptions): Promise<readonly ReleaseAnswer[]> {
    const args = requests.map(({ token }) => token)
    const replies = await this.#ask(scripts.release, requests, args, call)
    return requests.map(({ key }, index) => {
      const words = new Words(replies[index])
      switch (words.kind) {
        case 'r':
          return { outcome: 'released' }
        case 'l':
          return { outcome: 'lost' }
        default:
          return this.#failed(key, words)
      }
    })
  }

  async revoke(request: RevokeRequest, call: CallOptions): Promise<RevokeAnswer> {
    const args = [String(request.fence), request.immediate ? '1' : '0']
    const [reply] = await this.#ask(scripts.revoke, [request], args, call)
    const words = new Words(reply)
    switch (words.kind) {
      case 'v':
        return { outcome: 'revoked', remainingMs: words.millis() }
      case 'r':
        return { outcome: 'released' }
      case 'n':
        return { outcome: 'free' }
      case 'c':
        return { outcome: 'changed', fence: words.number() }
      default:
        return this.#failed(request.key, words)
    }
  }

  async peek(keys: readonly string[], call: CallOptions): Promise<readonly (LeaseRecord | null)[]> {
    const replies = await this.#ask(
      scripts.peek,
      keys.map((key) => ({ key })),
      [],
      call,
    )
    return keys.map((key, index) => {
      const words = new Words(replies[index])
      if (words.kind === 'n') return null
      if (words.kind === 'p') return describedLease(key, words)
      throw this.#failed(key, words).error
    })
  }

  async scan({ prefix, limit, cursor }: ScanRequest, call: CallOptions): Promise<ScanPage> {
    const [from = '0', ...left] = cursor === null ? [] : (JSON.parse(cursor) as string[])
    const args = [prefix, String(limit), from, ...left]
    const [next, leftOver, found] = await this.#ask(scripts.scan, [], args, call)
    const keysLeft = leftOver as readonly string[]
    const pairs = found as readonly string[]
    const records: LeaseRecord[] = []
    for (let at = 0; at < pairs.length; at += 2) {
      records.push(describedLease(pairs[at] as string, new Words(pairs[at + 1])))
    }
    const isLast = next === '-' && keysLeft.length === 0
    return { records, cursor: isLast ? null : JSON.stringify([next, ...keysLeft]) }
  }

  /** Redis forgets free records by itself; so there is nothing to ask, but a store out of reach is not kept quiet. */
  async purge(_request: PurgeRequest, call: CallOptions): Promise<number> {
    assertReachable(await this.#connect(call))
    return 0
  }

  async #ask(
    what: Script,
    items: readonly { readonly key: string }[],
    args: readonly string[],
    call: CallOptions,
  ): Promise<readonly Reply[]> {
    const keys = [this.#keys.leases, ...items.map(({ key }) => this.#keys.lease(key))]
    return runScript(await this.#connect(call), what, keys, [this.#retention, ...args])
  }

  #acquireAnswer(key: string, reply: Reply | undefined): AcquireAnswer {
    const words = new Words(reply)
    switch (words.kind) {
      case 'g':
        return { outcome: 'granted', fence: words.number(), remainingMs: words.millis() }
      case 'h':
        return { outcome: 'held', fence: words.number(), remainingMs: words.millis(), holder: words.rest() }
      case 's':
        return { outcome: 'spent' }
      default:
        return this.#failed(key, words)
    }
  }

  #refreshAnswer(key: string, reply: Reply | undefined): RefreshAnswer {
    const words = new Words(reply)
    switch (words.kind) {
      case 'h':
        return { outcome: 'held', remainingMs: words.millis() }
      case 'l':
        return { outcome: 'lost', reason: 'gone' }
      case 'r':
        return { outcome: 'lost', reason: 'revoked' }
      default:
        return this.#failed(key, words)
    }
  }

  #failed(key: string, words: Words): { readonly outcome: 'failed'; readonly error: DriverFault } {
    return { outcome: 'failed', error: itemFault(this.#keys.lease(key), words.rest()) }
  }
}

/** Records are taken apart at spaces, and `-` stands for no token. */
function assertToken(token: string): void {
  if (/^\S+$/.test(token) && token !== '-') return
  throw new DriverFault('bad-item', 'A token is text without spaces, and not a single hyphen.')
}

/** What a batch asks for is the same for all items as a rule, and said once then. */
function isWantedAlike(request: AcquireRequest, before: AcquireRequest | undefined): boolean {
  const { ttlMs, waitingMs, holder } = request
  return ttlMs === before?.ttlMs && waitingMs === before.waitingMs && holder === before.holder
}

function wish({ ttlMs, waitingMs, holder }: AcquireRequest): string {
  return `${toMicros(ttlMs)} ${toMicros(waitingMs)} ${holder}`
}

function describedLease(key: string, words: Words): LeaseRecord {
  const fence = words.number()
  const acquiredAt = Math.floor(words.millis())
  const expiresAt = Math.floor(words.millis())
  const remainingMs = words.millis()
  const [awaited, revoked] = [words.number() === 1, words.number() === 1]
  return { key, fence, holder: words.rest(), acquiredAt, expiresAt, remainingMs, awaited, revoked }
}
