import { Inject, Injectable, Module } from '@nestjs/common'
import { Cron, ScheduleModule } from '@nestjs/schedule'
import { getRepositoryToken, TypeOrmModule } from '@nestjs/typeorm'
import { currentLease, Exclusive, KeyHeldError, LockService, TaskScheduler } from 'leasehold'
import { LeaseholdModule } from 'leasehold/nestjs'
import { postgresDriver } from 'leasehold/postgres'
import pg from 'pg'
import { Column, DataSource, Entity, PrimaryColumn, type Repository } from 'typeorm'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freshPostgresUrl, isAvailable } from '../support/stores.ts'
import { everySecond } from './fleet.ts'
import { startApp } from './nest-app.ts'
import { isSlot, Runs } from './runs.ts'

@Entity()
class Report {
  @PrimaryColumn('int')
  id!: number

  // Fences go beyond 32 bits.
  @Column('bigint')
  fence!: number
}

const runs = new Runs()

@Injectable()
class ReportsService {
  readonly reports: Repository<Report>
  readonly locks: LockService

  constructor(
    @Inject(getRepositoryToken(Report)) reports: Repository<Report>,
    @Inject(LockService) locks: LockService,
  ) {
    this.reports = reports
    this.locks = locks
  }

  @Exclusive((id: number) => `report:${id}`, { onContention: 'throw' })
  async build(id: number, meanwhile: () => unknown): Promise<number> {
    const fence = currentLease()?.fence ?? 0
    await meanwhile()
    await this.reports.save({ id, fence })
    return fence
  }

  @Cron(everySecond)
  async nightly() {
    runs.note('nightly')
    await this.reports.count()
  }
}

/** A feature module on the connection that the application has already. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Report]),
    LeaseholdModule.forRootAsync({
      isGlobal: false,
      inject: [DataSource],
      useFactory: (source: DataSource) => ({ driver: postgresDriver(source), namespace: 'reports' }),
    }),
  ],
  providers: [ReportsService],
})
class ReportsModule {}

describe.skipIf(!(await isAvailable('postgres')))(
  'a feature module on the DataSource of TypeORM (B2, B8)',
  () => {
    async function twoPods(url: string) {
      const connection = TypeOrmModule.forRoot({
        type: 'postgres',
        url,
        entities: [Report],
        synchronize: true,
        // Two pods that make the tables at once are no concern of this test.
        retryAttempts: 3,
      })
      const imports = [ScheduleModule.forRoot(), connection, ReportsModule]
      const pods = [(await startApp({ imports })).app, (await startApp({ imports })).app] as const
      return pods.map((app) => ({ app, reports: app.get(ReportsService, { strict: false }) })) as [
        { app: (typeof pods)[0]; reports: ReportsService },
        { app: (typeof pods)[0]; reports: ReportsService },
      ]
    }

    async function rows(url: string, sql: string): Promise<Record<string, unknown>[]> {
      const client = new pg.Client(url)
      await client.connect()
      onTestFinished(() => client.end())
      return (await client.query<Record<string, unknown>>(sql)).rows
    }

    it('locks in the application’s database, and writes with the fence', async () => {
      const url = await freshPostgresUrl()
      const [one, other] = await twoPods(url)
      const fence = await one.reports.build(7, async () => {
        await expect(other.reports.build(7, () => {})).rejects.toThrow(KeyHeldError)
      })
      const later = await other.reports.build(7, () => {})
      expect(later).toBeGreaterThan(fence)
      expect(await rows(url, 'select id, fence from report')).toEqual([{ id: 7, fence: String(later) }])
    })

    it('wakes a waiter by push, and guards the crons of the feature', async () => {
      runs.all.splice(0)
      const [one, other] = await twoPods(await freshPostgresUrl())
      const lease = await one.reports.locks.acquire('key')
      const waiting = other.reports.locks.acquire('key', { wait: '10s', waitStep: '10s' })
      await vi.waitFor(async () =>
        expect(await one.reports.locks.peek('key')).toMatchObject({ awaited: true }),
      )
      await lease?.release()
      await (await waiting)?.release()
      const slots = await runs.reach('nightly', 3)
      expect(slots.every(isSlot)).toBe(true)
      expect(new Set(slots).size).toBe(slots.length)
      const tasks = one.app.get(TaskScheduler, { strict: false })
      expect((await tasks.history('ReportsService.nightly')).map(({ state }) => state)).toContain('succeeded')
    })

    it('gives back what it holds before the DataSource is destroyed', async () => {
      const url = await freshPostgresUrl()
      const [one, other] = await twoPods(url)
      await one.reports.locks.acquire('held')
      const source = one.app.get(DataSource, { strict: false })
      await one.app.close()
      expect(source.isInitialized).toBe(false)
      expect(await other.reports.locks.peek('held')).toBeNull()
      await expect(one.reports.locks.acquire('held')).rejects.toMatchObject({ code: 'CLOSED' })
    })

    it('says that a DataSource is not initialized, or is of another database', async () => {
      const locks = new LockService({
        driver: postgresDriver(new DataSource({ type: 'postgres', url: await freshPostgresUrl() })),
        requestTimeout: 200,
      })
      onTestFinished(() => locks.close())
      await expect(locks.acquire('key')).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        cause: { message: expect.stringContaining('initialize()') },
      })
      const other = new DataSource({ type: 'better-sqlite3', database: ':memory:' })
      expect(() => postgresDriver(other)).toThrow('of type "better-sqlite3"')
    })
  },
)
