import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DriverSession } from 'leasehold/driver'
import { redisDriver } from 'leasehold/redis'
import { startRedis, type TestServer } from '../../support/servers.ts'
import { openIoRedis6, type OpenClient } from './clients.ts'
import { call, scanAll, wanted } from './requests.ts'

describe('a scan among 50,000 other keys', () => {
  let server: TestServer
  let opened: OpenClient
  let session: DriverSession
  beforeAll(async () => {
    server = await startRedis({ config: { 'enable-debug-command': 'yes' } })
    opened = await openIoRedis6(server.url)
    session = redisDriver(opened.client).open('scan')
    await opened.send('debug', 'populate', '50000')
    await session.locks.acquire(
      Array.from({ length: 100 }, (_, index) => wanted(`${index % 2 ? 'odd' : 'even'} ${index}`)),
      call,
    )
  })
  afterAll(async () => {
    await opened.close()
    await server.close()
  })

  it.each([1, 7, 100, 1_000])('finds each lease once, in pages of %i', async (limit) => {
    const keys = (await scanAll(session, '', limit)).records.map(({ key }) => key)
    expect(keys).toHaveLength(100)
    expect(new Set(keys).size).toBe(100)
    const odd = await scanAll(session, 'odd', limit)
    expect(odd.records).toHaveLength(50)
    expect(odd.records.every(({ key }) => key.startsWith('odd'))).toBe(true)
  })

  it('never walks through the whole database in one script, and never by KEYS', async () => {
    await opened.send('config', 'resetstat')
    const { pages } = await scanAll(session, 'nothing begins so', 100)
    expect(pages).toBeGreaterThanOrEqual(5)
    expect(pages).toBeLessThan(20)
    const info = (await opened.send('info', 'commandstats')) as string
    expect(info).not.toContain('cmdstat_keys')
    const steps = Number(/cmdstat_scan:calls=(\d+)/.exec(info)?.[1])
    expect(steps).toBeGreaterThanOrEqual(pages)
    expect(steps).toBeLessThan(100)
  })
})
