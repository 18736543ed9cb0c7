import { setTimeout as sleep } from 'node:timers/promises'
import { LockService } from 'leasehold'
import { postgresDriver } from 'leasehold/postgres'
import { redisDriver } from 'leasehold/redis'
import { cycleOnce, freshKey, type Mutex } from '../mutex.ts'
import type { Finding, Scenario } from '../scenario.ts'
import { leaseholdMutex } from '../subjects/leasehold.ts'
import { openPostgresConnections } from '../subjects/postgres.ts'
import { openRedisConnections } from '../subjects/redis.ts'

const cyclesOfOneKey = 50_000
const freshKeys = 1_000_000
const callers = 1_000
const mebibyte = 2 ** 20
/** The records of released keys are kept for a minute, and purged within half of another. */
const afterRetentionMs = 100_000

export const bloat: readonly Scenario[] = [
  {
    name: 'bloat.postgres',
    what: `one key cycled ${cyclesOfOneKey.toLocaleString('en')} times, then ${freshKeys.toLocaleString('en')} fresh keys`,
    isExtra: true,
    async run(stores) {
      const { url } = await stores.postgres()
      // Waiting for the disk changes no page, so nobody waits for it here.
      const hasty = `${url}?options=${encodeURIComponent('-c synchronous_commit=off')}`
      const { pool, close } = await openPostgresConnections(hasty, 'bench')
      const driver = postgresDriver(pool, { tablePrefix: 'bloat_' })
      const mutex = leaseholdMutex(new LockService({ driver, namespace: 'bench' }))
      const figure = async (sql: string): Promise<number> => {
        const { rows } = await pool.query<{ figure: string }>(`select ${sql} as figure`)
        return Number(rows[0]?.figure)
      }
      const pages = `pg_relation_size('bloat_leases') / 8192`
      const bytes = `pg_total_relation_size('bloat_leases')`
      const hot = `(select 100.0 * n_tup_hot_upd / n_tup_upd from pg_stat_user_tables where relname = 'bloat_leases')`
      await cycleAgain(mutex, 'hot')
      // What the backends count is published a second later.
      await sleep(1_500)
      await pool.query('select 1')
      const [tablePages, hotPercent] = [await figure(pages), await figure(hot)]
      await cycleFresh(mutex)
      const fresh = await figure(bytes)
      await sleep(afterRetentionMs)
      await cycleAgain(mutex, 'after', 100)
      await sleep(afterRetentionMs / 10)
      const later = await figure(bytes)
      const records = await figure('(select count(*) from bloat_leases)')
      await mutex.close()
      await close()
      return [
        found('leasehold, one key', 'tablePages', tablePages),
        found('leasehold, one key', 'hotUpdatesPercent', hotPercent),
        found('leasehold, fresh keys', 'storeMiB', fresh / mebibyte),
        found('leasehold, fresh keys, purged', 'storeMiB', later / mebibyte),
        found('leasehold, fresh keys, purged', 'records', records),
      ]
    },
  },
  {
    name: 'bloat.redis',
    what: `${freshKeys.toLocaleString('en')} fresh keys`,
    isExtra: true,
    async run(stores) {
      const { ioredis, close } = await openRedisConnections((await stores.redis()).url)
      await ioredis.flushall()
      const mutex = leaseholdMutex(new LockService({ driver: redisDriver(ioredis), namespace: 'bloat' }))
      const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await ioredis.info('memory'))?.[1])
      await cycleAgain(mutex, 'first', 1)
      const before = await usedMemory()
      await cycleFresh(mutex)
      const after = await usedMemory()
      await sleep(afterRetentionMs)
      const later = await usedMemory()
      await mutex.close()
      await close()
      return [
        found('leasehold, fresh keys', 'storeMiB', (after - before) / mebibyte),
        found('leasehold, fresh keys, purged', 'storeMiB', (later - before) / mebibyte),
      ]
    },
  },
]

function found(subject: string, metric: Finding['metric'], value: number): Finding {
  return { subject, role: 'ours', metric, values: [value] }
}

async function cycleAgain(mutex: Mutex, key: string, times = cyclesOfOneKey): Promise<void> {
  for (let time = 0; time < times; time++) await cycleOnce(mutex, key)
}

async function cycleFresh(mutex: Mutex): Promise<void> {
  let left = freshKeys
  const loop = async (): Promise<void> => {
    while (left-- > 0) await cycleOnce(mutex, freshKey())
  }
  await Promise.all(Array.from({ length: callers }, loop))
}
