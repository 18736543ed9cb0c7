import { afterEach, describe, expect, it } from 'vitest'
import { redisDriver } from 'leasehold/redis'
import { startRedis, type TestServer } from '../../support/servers.ts'
import { openIoRedis6, type OpenClient } from './clients.ts'
import { useAll } from './every-answer.ts'
import { call, claimOf, eventually, grant, registration, wanted } from './requests.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function starts(config: Record<string, string>): Promise<TestServer> {
  const server = await startRedis({ config })
  closing.push(() => server.close())
  return server
}

async function opens(server: TestServer): Promise<OpenClient> {
  const opened = await openIoRedis6(server.url)
  closing.push(() => opened.close())
  return opened
}

/** Everything in the database, expiries included. */
async function contents({ send }: OpenClient): Promise<unknown> {
  const names = ((await send('keys', '*')) as string[]).toSorted()
  return Promise.all(
    names.map(async (name) => {
      const type = await send('type', name)
      const expires = await send('pexpiretime', name)
      switch (type) {
        case 'string':
          return [name, expires, await send('get', name)]
        case 'hash':
          return [name, expires, await send('hgetall', name)]
        case 'set':
          return [name, expires, ((await send('smembers', name)) as string[]).toSorted()]
        default:
          return [name, expires, await send('zrange', name, '0', '-1', 'withscores')]
      }
    }),
  )
}

describe('what scripts write', () => {
  it('is the same on a replica, to the last digit', async () => {
    const primary = await starts({})
    const replica = await starts({ replicaof: `127.0.0.1 ${primary.port}` })
    const [main, copy] = [await opens(primary), await opens(replica)]
    await eventually(
      () => copy.send('info', 'replication'),
      (info) => String(info).includes('master_link_status:up'),
    )
    await useAll(main.client, 'one')
    const session = redisDriver(main.client).open('two')
    for (let round = 0; round < 20; round++) {
      const requests = Array.from({ length: 20 }, (_, index) => wanted(`key ${index}`))
      await session.locks.acquire(requests, call)
      await session.locks.acquire(
        requests.map(({ key }) => wanted(key, { waitingMs: 5_000 })),
        call,
      )
      await session.locks.refresh(requests.slice(0, 15), call)
      await session.locks.release(requests.slice(round % 5), call)
    }
    expect(await main.send('wait', '1', '5000')).toBe(1)
    const [here, there] = [await contents(main), await contents(copy)]
    expect((here as unknown[]).length).toBeGreaterThan(20)
    expect(there).toEqual(here)
  })

  it('is there after a restart from the append-only file: leases held, slots decided', async () => {
    const server = await starts({ appendonly: 'yes', appendfsync: 'always' })
    const opened = await opens(server)
    const session = redisDriver(opened.client).open('durable')
    const lease = await grant(session, 'held')
    const released = await grant(session, 'released')
    await session.locks.release([released], call)
    const [registered] = await session.tasks.register([registration('task')], call)
    if (registered === undefined || !('mark' in registered)) throw new Error('not registered')
    const claim = claimOf('task', registered.mark + 1, registered.mark)
    const [claimed] = await eventually(
      () => session.tasks.claim([claim], call),
      ([answer]) => answer?.outcome === 'granted',
    )
    if (claimed?.outcome !== 'granted') throw new Error('not granted')
    await server.kill()
    await server.restart()
    const outcomes = await eventually(
      () => session.locks.refresh([lease], call).catch(() => []),
      ({ length }) => length === 1,
    )
    expect(outcomes).toMatchObject([{ outcome: 'held' }])
    expect(await session.locks.acquire([wanted('held')], call)).toMatchObject([
      { outcome: 'held', fence: lease.fence },
    ])
    expect(await session.locks.acquire([{ ...released }], call)).toEqual([{ outcome: 'spent' }])
    expect(await session.tasks.claim([claimOf('task', claim.slot, claim.after)], call)).toMatchObject([
      { outcome: 'decided', running: { slot: claim.slot, fence: claimed.fence } },
    ])
    expect(await session.tasks.claim([claim], call)).toMatchObject([
      { outcome: 'granted', fence: claimed.fence },
    ])
  })
})
