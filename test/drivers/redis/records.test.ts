import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { redisDriver } from 'leasehold/redis'
import { startRedis, type TestServer } from '../../support/servers.ts'
import { openClient, type OpenClient } from './clients.ts'
import { call, claimOf, eventually, grant, newToken, registration, wanted } from './requests.ts'

let server: TestServer
let opened: OpenClient
let session: DriverSession

beforeAll(async () => {
  server = await startRedis()
  opened = await openClient('ioredis 6', server.url)
  session = redisDriver(opened.client).open('records')
})
afterAll(async () => {
  await session.close()
  await opened.close()
  await server.close()
})

const nameOf = (key: string) => `{leasehold:records}:k:${key}`
const read = async (key: string) => ((await opened.send('get', nameOf(key))) as string).split(' ')
const pttl = (key: string) => opened.send('pttl', nameOf(key)) as Promise<number>
const serverMicros = async () => {
  const [seconds, micros] = (await opened.send('time')) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

describe('records of leases in Redis', () => {
  it('hold times of the server’s clock in microseconds', async () => {
    const before = await serverMicros()
    const { fence } = await grant(session, 'times', { ttlMs: 5_000 })
    const after = await serverMicros()
    const [, stored, expires, acquired] = (await read('times')).map(Number)
    expect(stored).toBe(fence)
    expect(acquired).toBeGreaterThanOrEqual(before)
    expect(acquired).toBeLessThanOrEqual(after)
    expect(expires).toBe((acquired ?? 0) + 5_000_000)
  })

  it('outlive their lease by the retention, whatever renews, refuses or frees it', async () => {
    const lease = await grant(session, 'kept', { ttlMs: 30_000 })
    const isAbout = async (ms: number) => {
      const left = await pttl('kept')
      expect(left).toBeGreaterThan(ms - 5_000)
      expect(left).toBeLessThanOrEqual(ms)
    }
    await isAbout(90_000)
    await session.locks.refresh([{ ...lease, ttlMs: 100_000 }], call)
    await isAbout(160_000)
    await session.locks.acquire([wanted('kept', { waitingMs: 1_000 })], call)
    await isAbout(160_000)
    await session.locks.revoke({ key: 'kept', fence: lease.fence, immediate: false }, call)
    await isAbout(160_000)
    await session.locks.release([lease], call)
    await isAbout(60_000)
  })

  it('outlive it by the retention that was asked for', async () => {
    const brief = redisDriver(opened.client, { retention: 2_000 }).open('records')
    const lease = await grant(brief, 'brief', { ttlMs: 1_000 })
    expect(await pttl('brief')).toBeGreaterThan(2_000)
    expect(await pttl('brief')).toBeLessThanOrEqual(3_000)
    await brief.locks.release([lease], call)
    expect(await pttl('brief')).toBeLessThanOrEqual(2_000)
    await brief.close()
  })

  it('are forgotten by Redis itself, and the next fence is greater all the same', async () => {
    const brief = redisDriver(opened.client, { retention: 1_000 }).open('records')
    const lease = await grant(brief, 'forgotten')
    await brief.locks.release([lease], call)
    await eventually(
      () => opened.send('exists', nameOf('forgotten')),
      (exists) => exists === 0,
    )
    expect((await grant(brief, 'forgotten')).fence).toBeGreaterThan(lease.fence)
    await brief.close()
  })

  it('say by their expiry whether the key is held, not by being there', async () => {
    const { fence } = await grant(session, 'judged')
    const fields = await read('judged')
    fields[2] = '0'.repeat(16)
    await opened.send('set', nameOf('judged'), fields.join(' '))
    expect(await session.locks.peek(['judged'], call)).toEqual([null])
    expect((await grant(session, 'judged')).fence).toBeGreaterThan(fence)
  })

  it('with a fence ahead of the clock are kept until the clock has passed it', async () => {
    const lease = await grant(session, 'ahead')
    const fields = await read('ahead')
    fields[1] = String(lease.fence + 3_600_000_000)
    await opened.send('set', nameOf('ahead'), fields.join(' '), 'keepttl')
    await session.locks.release([lease], call)
    expect(await pttl('ahead')).toBeGreaterThan(3_600_000)
    expect((await grant(session, 'ahead')).fence).toBe(lease.fence + 3_600_000_001)
    expect(await pttl('ahead')).toBeGreaterThan(3_600_000)
  })

  it('hold every fence to its last digit, through a thousand grants', async () => {
    let last = 0
    for (let round = 0; round < 1_000; round++) {
      const lease = await grant(session, 'exact')
      expect(lease.fence).toBeGreaterThan(last)
      expect((await read('exact'))[1]).toBe(String(lease.fence))
      last = lease.fence
      await session.locks.release([lease], call)
    }
  })

  it('are small once they are free', async () => {
    const lease = await grant(session, 'small', { holder: `{"label":"${'x'.repeat(500)}"}` })
    await session.locks.release([lease], call)
    expect(await opened.send('memory', 'usage', nameOf('small'))).toBeLessThan(250)
  })

  it.each([
    ['spaces', '{"a": "b  c"}'],
    ['line ends', 'a\r\nb\n'],
    ['NUL', 'a\0b'],
    ['every plane of Unicode', 'é鍵😀\u{10FFFF}'],
    ['a thousand bytes', 'x'.repeat(1_000)],
    ['nothing', ''],
  ])('give back a holder with %s as it was', async (what, holder) => {
    const lease = await grant(session, `holder ${what}`, { holder })
    const [answer] = await session.locks.acquire([wanted(`holder ${what}`, { waitingMs: 5 })], call)
    expect(answer).toMatchObject({ outcome: 'held', holder })
    await session.locks.refresh([lease], call)
    expect(await session.locks.peek([`holder ${what}`], call)).toMatchObject([{ holder }])
  })

  it('take no token that would make them unreadable, and nothing of that batch', async () => {
    for (const token of ['', ' ', 'a b', '-', 'a\n']) {
      await expect(
        session.locks.acquire([wanted('untouched'), wanted('token', { token })], call),
      ).rejects.toMatchObject({ kind: 'bad-item' })
    }
    expect(await session.locks.peek(['untouched', 'token'], call)).toEqual([null, null])
  })

  it('free a key for no token that only resembles the holder’s', async () => {
    const lease = await grant(session, 'resembling')
    const others = [
      lease.token.slice(0, -1),
      `${lease.token}A`,
      lease.token.toLowerCase(),
      '-',
      '',
      newToken(),
    ]
    for (const token of others) {
      if (token === lease.token) continue
      expect(await session.locks.release([{ key: 'resembling', token }], call)).toEqual([{ outcome: 'lost' }])
      expect(await session.locks.refresh([{ key: 'resembling', token, ttlMs: 1 }], call)).toMatchObject([
        { outcome: 'lost' },
      ])
    }
    expect(await session.locks.refresh([lease], call)).toMatchObject([{ outcome: 'held' }])
  })

  it('keep apart namespaces and keys that would read the same when joined', async () => {
    const driver = redisDriver(opened.client)
    const pairs = [
      ['a:b', 'c'],
      ['a', 'b:c'],
      ['a}:k:b', 'c'],
      ['a', 'k:b}:k:c'],
      ['a%7D', 'c'],
      ['a}', 'c'],
      ['{a}', 'c'],
    ] as const
    for (const [namespace, key] of pairs) await grant(driver.open(namespace), key)
    const prefixed = redisDriver(opened.client, { prefix: 'leasehold:a' })
    await grant(prefixed.open('b'), 'c')
    for (const [namespace, key] of pairs) {
      const page = await driver.open(namespace).locks.scan({ prefix: '', limit: 10, cursor: null }, call)
      expect(page.records.map((record) => record.key)).toContain(key)
    }
  })
})

describe('records of tasks in Redis', () => {
  it('never expire', async () => {
    const [answer] = await session.tasks.register([registration('durable')], call)
    if (answer === undefined || !('mark' in answer)) throw new Error('not registered')
    const slot = answer.mark + 1
    const [claimed] = await eventually(
      () => session.tasks.claim([claimOf('durable', slot, answer.mark)], call),
      ([claim]) => claim?.outcome === 'granted',
    )
    if (claimed?.outcome !== 'granted') throw new Error('not granted')
    const { attempt, fence } = claimed
    await session.tasks.complete(
      [{ task: 'durable', slot, attempt, fence, outcome: 'succeeded', reason: null, error: null }],
      call,
    )
    await session.tasks.control(
      { task: 'durable', kind: 'pause', requestId: '1', by: 'me', fence: null },
      call,
    )
    const names = (await opened.send('keys', '{leasehold:records}:[^k]*')) as string[]
    expect(names.toSorted()).toEqual(
      ['c', 'e', 'i', 'r:durable', 't:durable'].map((name) => `{leasehold:records}:${name}`),
    )
    for (const name of names) expect([name, await opened.send('pttl', name)]).toEqual([name, -1])
  })

  it('are out of reach of a plain lease of the same name', async () => {
    await session.tasks.register([registration('shared')], call)
    const lease = await grant(session, 'shared')
    await session.locks.release([lease], call)
    expect(await opened.send('pttl', '{leasehold:records}:t:shared')).toBe(-1)
    expect(await session.tasks.inspect(['shared'], call)).toMatchObject([{ task: 'shared' }])
  })

  it('give back every text as it was', async () => {
    const texts = ['a b', 'a\0b\n', 'é鍵😀', '"]\\', '{}', '', '-', 'false']
    for (const [at, text] of texts.entries()) {
      const task = `texts ${at}`
      await session.tasks.register([registration(task, { fingerprint: text, definition: text })], call)
      await session.tasks.register([registration(task, { fingerprint: `${text}!`, definition: text })], call)
      await session.tasks.control({ task, kind: 'pause', requestId: text, by: text, fence: null }, call)
      expect(
        await session.tasks.control({ task, kind: 'pause', requestId: text, by: text, fence: null }, call),
      ).toMatchObject({ outcome: 'repeated' })
      expect(await session.tasks.inspect([task], call)).toMatchObject([
        { fingerprint: `${text}!`, definition: text, pausedBy: text, paused: true },
      ])
      expect(await session.tasks.register([registration(task, { fingerprint: text })], call)).toMatchObject([
        { outcome: 'superseded' },
      ])
    }
  })

  it('keep fences exact, in the record and in the log', async () => {
    const [answer] = await session.tasks.register([registration('fences')], call)
    if (answer === undefined || !('mark' in answer)) throw new Error('not registered')
    let { mark } = answer
    let last = 0
    for (let round = 0; round < 50; round++) {
      const [claimed] = await eventually(
        () => session.tasks.claim([claimOf('fences', mark + 1, mark)], call),
        ([claim]) => claim?.outcome === 'granted',
      )
      if (claimed?.outcome !== 'granted') throw new Error('not granted')
      const { slot, attempt, fence } = claimed
      expect(fence).toBeGreaterThan(last)
      expect(await opened.send('hget', '{leasehold:records}:t:fences', 'fence')).toBe(String(fence))
      const [row] = await session.tasks.log({ task: 'fences', from: null, to: null, limit: 1 }, call)
      expect(row).toMatchObject({ slot, fence })
      await session.tasks.complete(
        [{ task: 'fences', slot, attempt, fence, outcome: 'failed', reason: null, error: 'no' }],
        call,
      )
      mark = slot
      last = fence
    }
  })
})
