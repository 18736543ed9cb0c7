// Why docs/drivers/postgres.md asks for timeouts in a pool that is lent: connections that a failed switch or a load balancer
// has forgotten never answer, and are never reset.
import { LockService } from 'leasehold'
import { postgresDriver } from 'leasehold/postgres'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { freshNamespace, freshPostgresUrl, isAvailable } from '../../support/stores.ts'

describe.skipIf(!(await isAvailable('postgres')))(
  'a pool of two whose connections have all gone deaf',
  () => {
    it('is of use again soon if it has a query_timeout and a connectionTimeoutMillis', async () => {
      const { acquires } = await deafPool({ query_timeout: 1_500, connectionTimeoutMillis: 1_500 })
      await expect.poll(acquires, { timeout: 20_000 }).toBe(true)
    })

    it('is of no use ever again without: they stay lent out', async () => {
      const { acquires, pool } = await deafPool({})
      for (let time = 0; time < 4; time++) expect(await acquires()).toBe(false)
      expect(pool.idleCount).toBe(0)
      expect(pool.waitingCount).toBeGreaterThan(0)
    })
  },
)

async function deafPool(options: pg.PoolConfig): Promise<{ pool: pg.Pool; acquires(): Promise<boolean> }> {
  const proxy = await startFaultProxy(await freshPostgresUrl())
  const pool = new pg.Pool({ connectionString: proxy.url, max: 2, ...options })
  const locks = new LockService({
    driver: postgresDriver(pool, { listen: false }),
    namespace: freshNamespace(),
    // Longer than a busy machine takes for a connection and a query.
    requestTimeout: 1_000,
  })
  onTestFinished(async () => {
    await locks.close()
    await proxy.close()
    await pool.end()
  })
  const acquires = (): Promise<boolean> =>
    locks.acquire(freshNamespace()).then(
      () => true,
      () => false,
    )
  await expect.poll(acquires, { timeout: 20_000 }).toBe(true)
  await proxy.set('drop-answers')
  // Connections that lose an answer never get another one; those that are made later do.
  await expect
    .poll(async () => (await acquires()) || pool.waitingCount, { timeout: 20_000 })
    .toBeGreaterThan(0)
  await proxy.set('pass')
  return { pool, acquires }
}
