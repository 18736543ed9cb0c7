// What connect() says of a Redis that does not let it in: the reason, at once, and never another database instead.
import { connect, type LeaseholdError } from 'leasehold'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../support/servers.ts'
import { isAvailable } from '../../support/stores.ts'

interface Refusal {
  readonly code: string
  readonly message: string
}

const clients = ['ioredis', 'redis'] as const

async function refusalOf(url: URL, client: (typeof clients)[number]): Promise<Refusal> {
  const before = performance.now()
  const refusal = await connect(url.href, { client, requestTimeout: '5s' }).then(
    (locks) => {
      onTestFinished(() => locks.close())
      return expect.unreachable('it was let in')
    },
    (error: unknown) => error as LeaseholdError,
  )
  expect(performance.now() - before).toBeLessThan(2_500)
  expect(refusal.message).not.toMatch(/secret|wrong:/)
  return refusal
}

describe.skipIf(!(await isAvailable('redis'))).each(clients)('connect with %s', (client) => {
  test('a password that is wrong or missing is called so', async () => {
    await using server = await startRedis({ config: { requirepass: 'secret' } })
    const url = new URL(server.url)
    url.username = 'default'
    url.password = 'wrong'
    expect(await refusalOf(url, client)).toMatchObject({
      code: 'STORE_UNUSABLE',
      message: expect.stringMatching(/WRONGPASS.*Correct the user, the password/),
    })
  })

  test('a database that the server has not is refused, and not replaced by database 0', async () => {
    await using server = await startRedis()
    const url = new URL(server.url)
    url.pathname = '/99'
    expect(await refusalOf(url, client)).toMatchObject({
      code: 'STORE_UNUSABLE',
      message: expect.stringMatching(/DB index is out of range.*number of the database/),
    })
  })

  test('a server that is not there is told from one that does not answer', async () => {
    await using server = await startRedis()
    const url = new URL(server.url)
    await server.kill()
    expect(await refusalOf(url, client)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    })
  })
})
