import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { redisDriver } from 'leasehold/redis'
import { startRedis, type TestServer } from '../../support/servers.ts'
import { clientKinds, openClient, openIoRedis6, type ClientKind, type OpenClient } from './clients.ts'
import { call, claimOf, grant, newToken, registration, wanted, wantedMany } from './requests.ts'

let server: TestServer
let operator: OpenClient

beforeAll(async () => {
  server = await startRedis()
  operator = await openClient('ioredis 6', server.url)
})
afterAll(async () => {
  await operator.close()
  await server.close()
})

/** How often each command ran since the last `config resetstat`; commands that scripts run count as well. */
async function commandCounts(): Promise<Record<string, number>> {
  const info = (await operator.send('info', 'commandstats')) as string
  const counts = [...info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]
  return Object.fromEntries(counts.map(([, name, calls]) => [name, Number(calls)]))
}

describe.each(clientKinds)('scripts with %s', (kind: ClientKind) => {
  let opened: OpenClient
  let session: DriverSession
  beforeAll(async () => {
    opened = await openClient(kind, server.url)
    session = redisDriver(opened.client).open(`scripts ${kind}`)
  })
  afterAll(async () => {
    await session.close()
    await opened.close()
  })

  it('take 500 leases in one round trip, and 1,000 in two', async () => {
    const [first, second] = [wantedMany(1_000).slice(0, 500), wantedMany(1_000).slice(500)]
    await session.locks.acquire(first, call)
    await session.locks.refresh(first, call)
    await session.locks.release(first, call)
    const verbs = ['acquire', 'refresh', 'release'] as const
    for (const verb of verbs) {
      await operator.send('config', 'resetstat')
      const batches = [first, second].map((batch) => batch.map((one) => ({ ...one, token: newToken() })))
      if (verb !== 'acquire') for (const batch of batches) await session.locks.acquire(batch, call)
      await operator.send('config', 'resetstat')
      for (const batch of batches) {
        const answers = await session.locks[verb](batch, call)
        expect(answers).toHaveLength(500)
        expect(new Set(answers.map(({ outcome }) => outcome)).size).toBe(1)
      }
      const { evalsha, eval: whole, time, get, set } = await commandCounts()
      expect([verb, evalsha, whole]).toEqual([verb, 2, undefined])
      // The clock is read once a script, and each record is read once and written once.
      expect([verb, time, get, set]).toEqual([verb, 2, 1_000, 1_000])
      for (const batch of batches) await session.locks.release(batch, call)
    }
  })

  it('are one command for every other call too', async () => {
    const calls = [
      () => session.locks.peek(['a', 'b'], call),
      () => session.locks.revoke({ key: 'a', fence: 1, immediate: true }, call),
      () => session.locks.scan({ prefix: '', limit: 10, cursor: null }, call),
      () => session.tasks.register([registration('one'), registration('two')], call),
      () => session.tasks.claim([claimOf('one', 5, 4), claimOf('two', 5, 4)], call),
      () => session.tasks.refresh([{ task: 'one', token: newToken(), ttlMs: 1_000 }], call),
      () => session.tasks.poll(call),
      () => session.tasks.inspect(null, call),
      () => session.tasks.log({ task: 'one', from: null, to: null, limit: 5 }, call),
      () => session.tasks.purge({ retentionMs: 1_000, limit: 5 }, call),
    ]
    for (const ask of calls) {
      await ask()
      await operator.send('config', 'resetstat')
      await ask()
      const { evalsha, eval: whole } = await commandCounts()
      expect([String(ask), evalsha, whole]).toEqual([String(ask), 1, undefined])
    }
  })

  it('are loaded again whenever the server has forgotten them (N12)', async () => {
    const flushed = async <Answer>(ask: () => Promise<Answer>): Promise<Answer> => {
      await operator.send('script', 'flush')
      return ask()
    }
    const lease = await flushed(() => grant(session, 'flushed'))
    expect(await flushed(() => session.locks.refresh([lease], call))).toMatchObject([{ outcome: 'held' }])
    expect(await flushed(() => session.locks.peek(['flushed'], call))).toMatchObject([{ fence: lease.fence }])
    expect(
      await flushed(() => session.locks.scan({ prefix: 'flushed', limit: 5, cursor: null }, call)),
    ).toMatchObject({ records: [{ key: 'flushed' }] })
    expect(await flushed(() => session.locks.revoke({ ...lease, immediate: false }, call))).toMatchObject({
      outcome: 'revoked',
    })
    expect(await flushed(() => session.locks.release([lease], call))).toEqual([{ outcome: 'released' }])
    await flushed(() => session.tasks.register([registration('flushed')], call))
    await flushed(() => session.tasks.claim([claimOf('flushed', 5, 4)], call))
    await flushed(() => session.tasks.refresh([{ task: 'flushed', token: newToken(), ttlMs: 1 }], call))
    await flushed(() =>
      session.tasks.complete(
        [{ task: 'flushed', slot: 5, attempt: 1, fence: 1, outcome: 'failed', reason: null, error: null }],
        call,
      ),
    )
    await flushed(() =>
      session.tasks.control({ task: 'flushed', kind: 'pause', requestId: '1', by: '', fence: null }, call),
    )
    expect((await flushed(() => session.tasks.poll(call))).version).toBeGreaterThan(0)
    expect(await flushed(() => session.tasks.inspect(['flushed'], call))).toMatchObject([{ paused: true }])
    await flushed(() => session.tasks.log({ task: 'flushed', from: null, to: null, limit: 5 }, call))
    expect(await flushed(() => session.tasks.purge({ retentionMs: 60_000, limit: 5 }, call))).toBe(0)
  })

  it('grant once each when the cache is flushed over and over meanwhile', async () => {
    let isOver = false
    const flushing = (async () => {
      while (!isOver) await operator.send('script', 'flush')
    })()
    const fences: number[] = []
    for (let round = 0; round < 100; round++) {
      const lease = await grant(session, 'contested')
      fences.push(lease.fence)
      expect(await session.locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
      expect(await session.locks.release([lease], call)).toEqual([{ outcome: 'released' }])
    }
    isOver = true
    await flushing
    expect(new Set(fences).size).toBe(100)
  })
})

describe('scripts', () => {
  it('hold the server up for a few milliseconds at most', async () => {
    const { client, close } = await openIoRedis6(server.url)
    const session = redisDriver(client).open('time')
    await session.locks.acquire(wantedMany(500), call)
    let best = Infinity
    for (let round = 0; round < 20; round++) {
      await operator.send('config', 'resetstat')
      await session.locks.acquire(
        wantedMany(500).map((one) => ({ ...one, key: `${one.key} ${round}` })),
        call,
      )
      const info = (await operator.send('info', 'commandstats')) as string
      best = Math.min(best, Number(/cmdstat_evalsha:calls=1,usec=(\d+)/.exec(info)?.[1]))
    }
    expect(best).toBeLessThan(10_000)
    await session.close()
    await close()
  })

  it('go through auto-pipelining and share its round trips', async () => {
    const { client, close } = await openIoRedis6(server.url, { enableAutoPipelining: true })
    const session = redisDriver(client).open('pipelined')
    const leases = await Promise.all(Array.from({ length: 50 }, (_, index) => grant(session, `key ${index}`)))
    expect(new Set(leases.map(({ key }) => key)).size).toBe(50)
    await operator.send('script', 'flush')
    const answers = await Promise.all(leases.map((lease) => session.locks.refresh([lease], call)))
    expect(answers.flat().every(({ outcome }) => outcome === 'held')).toBe(true)
    expect(await session.locks.acquire([wanted('key 7')], call)).toMatchObject([{ outcome: 'held' }])
    await Promise.all(leases.map((lease) => session.locks.release([lease], call)))
    await session.close()
    await close()
  })
})
