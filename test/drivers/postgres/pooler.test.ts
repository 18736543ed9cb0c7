import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresDriver } from 'leasehold/postgres'
import { freshNamespace, isAvailable, pooledUrl } from '../../support/stores.ts'
import { asking, call, type Database, freshDatabase } from './database.ts'

describe.skipIf(!(await isAvailable('pgbouncer')))('behind a pooler in transaction mode', () => {
  let database: Database
  let url: string
  beforeAll(async () => {
    database = await freshDatabase()
    url = await pooledUrl(database.url)
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const pool = () => {
    const pooled = new pg.Pool({ connectionString: url, max: 10 })
    database.also(() => pooled.end())
    return pooled
  }

  it.each(['pg', 'postgres.js'])(
    'leases work, with more clients than connections: %s (M31)',
    async (kind) => {
      const sql = postgres(url, { max: 10, onnotice: () => {} })
      database.also(() => sql.end({ timeout: 1 }))
      const { locks } = postgresDriver(kind === 'pg' ? pool() : sql).open(freshNamespace())
      const leases = Array.from({ length: 100 }, (_, index) => asking(`key-${index}`))
      for (const verb of ['acquire', 'refresh', 'release'] as const) {
        const answers = await Promise.all(leases.map((lease) => locks[verb]([lease], call)))
        const expected = { acquire: 'granted', refresh: 'held', release: 'released' }[verb]
        expect(new Set(answers.map(([answer]) => answer!.outcome))).toEqual(new Set([expected]))
      }
    },
  )

  it('push succeeds in subscribing and hears nothing, which a probe finds out', async () => {
    const namespace = freshNamespace()
    const ignore = { onNotice: () => {}, onDeaf: () => {} }
    const [pooled, direct] = [postgresDriver(pool()).open(namespace), database.driver().open(namespace)]
    const [deaf, sound] = [await pooled.listen!(ignore), await direct.listen!(ignore)]
    let isHeard = false
    const probe = deaf.probe().then(
      () => (isHeard = true),
      () => 'ended',
    )
    for (let round = 0; round < 20; round++) await sound.probe()
    expect(isHeard).toBe(false)
    await Promise.all([pooled.close(), direct.close()])
    expect(await probe).toBe('ended')
  })

  it('push works over a connection past the pooler', async () => {
    const session = postgresDriver(pool(), { listen: () => new pg.Client(database.url) }).open(
      freshNamespace(),
    )
    const channel = await session.listen!({ onNotice: () => {}, onDeaf: () => {} })
    await channel.probe()
    await session.close()
  })
})
