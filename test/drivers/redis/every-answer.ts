// One pass over the driver that reads every kind of answer.
import { expect } from 'vitest'
import { redisDriver, type RedisClient } from 'leasehold/redis'
import { call, claimOf, eventually, grant, registration, scanAll, wanted } from './requests.ts'

/** Uses every kind of answer once. */
export async function useAll(client: RedisClient, namespace: string): Promise<void> {
  const session = redisDriver(client).open(namespace)
  const lease = await grant(session, 'key *[a]\\', { holder: '{"n":1}' })
  expect(Number.isSafeInteger(lease.fence)).toBe(true)
  expect(lease.remainingMs).toBe(60_000)
  const [held] = await session.locks.acquire([wanted('key *[a]\\', { waitingMs: 60_000 })], call)
  expect(held).toMatchObject({ outcome: 'held', fence: lease.fence, holder: '{"n":1}' })
  const [refreshed] = await session.locks.refresh([lease], call)
  expect(refreshed).toMatchObject({ outcome: 'held', remainingMs: 60_000 })
  const [peeked, nobody] = await session.locks.peek(['key *[a]\\', 'nobody'], call)
  expect(peeked).toMatchObject({ fence: lease.fence, awaited: true, revoked: false })
  expect(nobody).toBeNull()
  for (const prefix of ['', 'key *', 'key *[']) {
    expect((await scanAll(session, prefix)).records).toMatchObject([
      { key: 'key *[a]\\', fence: lease.fence },
    ])
  }
  expect((await scanAll(session, 'key a')).records).toEqual([])
  const heard: unknown[] = []
  const channel = await session.listen!({ onNotice: (notice) => heard.push(notice), onDeaf() {} })
  await channel.probe()
  expect(await session.locks.release([lease], call)).toEqual([{ outcome: 'released' }])
  const [registered] = await session.tasks.register([registration('task')], call)
  if (registered === undefined || !('mark' in registered)) throw new Error('not registered')
  const { mark } = registered
  expect(Math.abs(mark - Date.now())).toBeLessThan(60_000)
  const [run] = await eventually(
    () => session.tasks.claim([claimOf('task', mark + 1, mark)], call),
    ([answer]) => answer?.outcome === 'granted',
  )
  expect(run).toMatchObject({ slot: mark + 1, attempt: 1, running: { slot: mark + 1 } })
  expect(
    await session.tasks.control(
      { task: 'task', kind: 'cancel', requestId: '1', by: 'me', fence: null },
      call,
    ),
  ).toEqual({ outcome: 'applied', version: 1 })
  expect(await session.tasks.inspect(null, call)).toMatchObject([{ task: 'task', stop: 'me' }])
  expect(await session.tasks.log({ task: 'task', from: mark, to: mark + 2, limit: 5 }, call)).toMatchObject([
    { slot: mark + 1, state: 'running', endedAt: null },
    { slot: mark, state: 'registered', fence: null },
  ])
  expect(await session.tasks.poll(call)).toMatchObject({ version: 1 })
  // In a cluster the messages of different nodes come in any order.
  await eventually(
    () => heard.length,
    (count) => count === 2,
  )
  expect(heard).toEqual([
    { kind: 'released', key: 'key *[a]\\' },
    { kind: 'control', version: 1 },
  ])
  await session.close()
}
