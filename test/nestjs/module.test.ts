import {
  Controller,
  type DynamicModule,
  Inject,
  Injectable,
  Module,
  type OnModuleDestroy,
  Scope,
} from '@nestjs/common'
import { Cron, ScheduleModule } from '@nestjs/schedule'
import { HealthCheckService, TerminusModule } from '@nestjs/terminus'
import {
  currentLease,
  Exclusive,
  LockService,
  onEvent,
  Scheduled,
  ScheduledTaskStore,
  type TaskRun,
  TaskScheduler,
} from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import {
  getLocksToken,
  InjectLocks,
  InjectTasks,
  InjectTaskStore,
  LeaseholdHealthIndicator,
  LeaseholdModule,
  type LeaseholdModuleOptions,
} from 'leasehold/nestjs'
import { faultyDriver } from 'leasehold/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { freshNamespace } from '../support/stores.ts'
import { everySecond, Fleet } from './fleet.ts'
import { startApp } from './nest-app.ts'

describe('forRoot', () => {
  it('gives every module the services of one store (A2, A3)', async () => {
    @Injectable()
    class Reports {
      constructor(
        readonly locks: LockService,
        readonly tasks: TaskScheduler,
        readonly store: ScheduledTaskStore,
      ) {}
    }
    class FeatureModule {}
    const { app } = await startApp({
      imports: [new Fleet().leasehold(), { module: FeatureModule, providers: [Reports] }],
    })
    const { locks, tasks, store } = app.get(Reports, { strict: false })
    expect(await locks.runExclusively('key', () => {})).toBe('ran')
    expect(await store.run('fired', () => {}, { every: '1s' })).toBe('ran')
    const history = await tasks.history('fired')
    expect(history.map(({ state }) => state)).toEqual(['succeeded', 'registered'])
  })

  it('gives only those that import it, with isGlobal: false', async () => {
    @Injectable()
    class Reports {
      constructor(readonly locks: LockService) {}
    }
    class FeatureModule {}
    const feature = (imports: DynamicModule[]) => ({ module: FeatureModule, providers: [Reports], imports })
    const ours = LeaseholdModule.forRoot({ ...new Fleet().options, isGlobal: false })
    await expect(startApp({ imports: [ours, feature([])] })).rejects.toThrow('LockService')
    const { app } = await startApp({ imports: [ours, feature([ours])] })
    expect(app.get(Reports, { strict: false }).locks).toBeInstanceOf(LockService)
  })

  it('takes the store from the environment, with nothing said', async () => {
    const namespace = freshNamespace()
    vi.stubEnv('LEASEHOLD_URL', `memory:${namespace}`)
    vi.stubEnv('LEASEHOLD_NAMESPACE', namespace)
    const { app } = await startApp({ imports: [LeaseholdModule.forRoot()] })
    const other = new LockService({ driver: memoryDriver({ store: namespace }), namespace })
    onTestFinished(() => other.close())
    const lease = await app.get(LockService).acquire('key')
    expect(await other.acquire('key')).toBeNull()
    await lease?.release()
    expect(app.get(LockService).namespace).toBe(namespace)
  })

  it.each<[string, object]>([
    ['guard', { guard: true }],
    ['gaurd', { gaurd: false }],
    ['url', { url: 'memory:', driver: memoryDriver() }],
    ['unguarded', { unguarded: 'beat' }],
  ])('refuses what would do nothing in silence: %s', (option, options) => {
    expect(() => LeaseholdModule.forRoot(options as LeaseholdModuleOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option }),
    )
  })

  it.each<[string, LeaseholdModuleOptions]>([
    ['drain', { drain: 'soon' as never }],
    ['ttl', { ttl: '1ms' }],
    ['timeZone', { scheduler: { timeZone: 'Europe/Nowhere' } }],
    ['url', { url: 'ftp://store' }],
  ])('does not start with a bad %s', async (option, options) => {
    const start = startApp({ imports: [LeaseholdModule.forRoot({ url: 'memory:', ...options })] })
    await expect(start).rejects.toMatchObject({ code: 'INVALID_OPTION', option })
  })
})

describe('forRootAsync', () => {
  it('makes the options of what it injects', async () => {
    const { store } = new Fleet()
    class ClientModule {}
    Module({ providers: [{ provide: 'CLIENT', useValue: store }], exports: ['CLIENT'] })(ClientModule)
    const { app } = await startApp({
      imports: [
        LeaseholdModule.forRootAsync({
          imports: [ClientModule],
          inject: ['CLIENT'],
          useFactory: async (client: LeaseholdModuleOptions) => client,
        }),
      ],
    })
    expect(app.get(LockService).namespace).toBe(store.namespace)
  })

  it('refuses what it makes wrongly, and says where it goes', async () => {
    const start = startApp({
      imports: [
        LeaseholdModule.forRootAsync({ useFactory: () => ({ url: 'memory:', isGlobal: true }) as object }),
      ],
    })
    await expect(start).rejects.toThrow('beside useFactory')
  })

  it('leaves a service open that the application made itself', async () => {
    const locks = new LockService({ driver: memoryDriver(), namespace: freshNamespace() })
    onTestFinished(() => locks.close())
    const { app } = await startApp({ imports: [LeaseholdModule.forRoot({ locks })] })
    expect(app.get(LockService)).toBe(locks)
    await app.close()
    expect(await locks.runExclusively('key', () => {})).toBe('ran')
  })
})

describe('several stores', () => {
  it('are injected by their names', async () => {
    const [main, audit] = [new Fleet(), new Fleet()]
    @Injectable()
    class Reports {
      constructor(
        readonly locks: LockService,
        @InjectLocks('audit') readonly auditLocks: LockService,
        @InjectTasks('audit') readonly auditTasks: TaskScheduler,
        @InjectTaskStore('audit') readonly auditStore: ScheduledTaskStore,
      ) {}
    }
    const { app } = await startApp({
      imports: [main.leasehold(), LeaseholdModule.forRoot({ ...audit.options, name: 'audit' })],
      providers: [Reports],
    })
    const reports = app.get(Reports)
    expect(app.get(getLocksToken('audit'))).toBe(reports.auditLocks)
    await using lease = await reports.locks.acquire('key')
    await using other = await reports.auditLocks.acquire('key')
    expect([lease !== null, other !== null]).toEqual([true, true])
    const ran = vi.fn()
    reports.auditTasks.schedule('late', { every: 100 }, ran)
    await vi.waitFor(() => expect(ran).toHaveBeenCalled())
    expect(await reports.auditStore.run('fired', () => {})).toBe('ran')
  })
})

describe('@Scheduled', () => {
  it('runs on providers and controllers, once for the fleet, above and below other decorators', async () => {
    const runs: { name: string; slot: number }[] = []
    const note = (name: string, { slot }: TaskRun) => runs.push({ name, slot: slot.getTime() })
    @Injectable()
    class Books {
      readonly own = 'books'

      @Scheduled({ every: 200 })
      close(run: TaskRun) {
        note(`${this.own} ${run.task}`, run)
      }
    }
    @Controller()
    class Pages {
      @Exclusive('pages', { onContention: 'wait', wait: '5s' })
      @Scheduled({ every: 200, name: 'refresh' })
      async refresh(run: TaskRun) {
        note(`${currentLease()?.key} ${run.task}`, run)
      }
    }
    const fleet = new Fleet()
    for (let pod = 0; pod < 3; pod += 1) {
      await startApp({ imports: [fleet.leasehold()], providers: [Books], controllers: [Pages] })
    }
    for (const name of ['books Books.close', 'pages refresh']) {
      const of = () => runs.filter((run) => run.name === name).map(({ slot }) => slot)
      await vi.waitFor(() => expect(of().length).toBeGreaterThan(3), 5_000)
      expect(new Set(of()).size).toBe(of().length)
    }
  })

  it('logs what a task throws, which nobody else would', async () => {
    @Injectable()
    class Books {
      @Scheduled({ every: 200 })
      fail() {
        throw new RangeError('no paper')
      }
    }
    const { log } = await startApp({ imports: [new Fleet().leasehold()], providers: [Books] })
    await vi.waitFor(() => expect(log.lines.join('\n')).toMatch(/error .*Books\.fail of .* failed: no paper/))
  })

  it.each([
    ['request-scoped', Scope.REQUEST],
    ['transient', Scope.TRANSIENT],
  ])('is refused on a %s provider', async (what, scope) => {
    @Injectable({ scope })
    class PerRequest {
      @Scheduled({ every: '1h' })
      task() {}
    }
    const start = startApp({ imports: [new Fleet().leasehold()], providers: [PerRequest] })
    await expect(start).rejects.toMatchObject({ code: 'UNGUARDABLE' })
    await expect(start).rejects.toThrow(what)
  })

  it('gives the store back when the application cannot start', async () => {
    const { driver, faults } = faultyDriver(memoryDriver())
    const closed = vi.fn()
    const watched = {
      ...driver,
      open(namespace: string) {
        const session = driver.open(namespace)
        return { ...session, close: () => session.close().then(closed) }
      },
    }
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest {
      @Scheduled({ every: '1h' })
      task() {}
    }
    const ours = LeaseholdModule.forRoot({ driver: watched })
    await expect(startApp({ imports: [ours], providers: [PerRequest] })).rejects.toThrow('request-scoped')
    expect(closed).toHaveBeenCalledOnce()
    expect(faults.calls('register')).toBe(0)
  })

  it('is refused where two tasks, or a task and a guarded job, would share a name', async () => {
    @Injectable()
    class Books {
      @Scheduled({ every: '1h', name: 'close' })
      close() {}
    }
    @Injectable()
    class Tasks {
      @Cron('0 0 1 1 *', { name: 'close' })
      close() {}
    }
    const twice = [Books, { provide: 'other', useClass: Books }]
    await expect(startApp({ imports: [new Fleet().leasehold()], providers: twice })).rejects.toMatchObject({
      code: 'DUPLICATE_TASK',
    })
    await expect(new Fleet().start({ providers: [Books, Tasks] })).rejects.toThrow('names both')
  })
})

describe('@Exclusive', () => {
  @Injectable()
  class Reports {
    @Exclusive('report', { onContention: 'throw' })
    async build() {
      return currentLease()?.key
    }
  }

  it('knows its service in providers of every scope', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class PerRequest extends Reports {}
    @Controller()
    class Pages extends Reports {}
    const made = { provide: 'made', useFactory: () => new Reports() }
    const { app } = await startApp({
      imports: [new Fleet().leasehold()],
      providers: [Reports, PerRequest, made],
      controllers: [Pages],
    })
    expect(await app.get(Reports).build()).toBe('report')
    expect(await app.get(Pages).build()).toBe('report')
    expect(await app.get<Reports>('made').build()).toBe('report')
    expect(await (await app.resolve(PerRequest)).build()).toBe('report')
  })

  it('hides no metadata of Nest: a cron below or above it is still a cron, and guarded', async () => {
    const held: (string | undefined)[] = []
    @Injectable()
    class Tasks {
      @Exclusive('above')
      @Cron(everySecond)
      async above() {
        held.push(currentLease()?.key)
      }

      @Cron(everySecond)
      @Exclusive('below')
      async below() {
        held.push(currentLease()?.key)
      }
    }
    const { log } = await new Fleet().start({ providers: [Tasks] })
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: Tasks.above, Tasks.below')
    await vi.waitFor(() => expect(new Set(held)).toEqual(new Set(['above', 'below'])), 5_000)
  })
})

describe('shutting down', () => {
  /** A client that a module of the application closes, as users write it. */
  @Injectable()
  class Client implements OnModuleDestroy {
    static closed: (() => void)[] = []
    isOpen = true

    onModuleDestroy() {
      this.isOpen = false
      for (const tell of Client.closed.splice(0)) tell()
    }
  }
  @Module({ providers: [Client], exports: [Client] })
  class ClientModule {}

  it.each(['before', 'after'])(
    'drains running tasks before any module closes its client, imported %s ours',
    async (order) => {
      const said: string[] = []
      let begin: () => void = () => {}
      const begun = new Promise<void>((resolve) => (begin = resolve))
      @Injectable()
      class Tasks {
        readonly #client: Client
        constructor(@Inject(Client) client: Client) {
          this.#client = client
        }

        @Cron(everySecond)
        async handleCron() {
          begin()
          await new Promise((resolve) => setTimeout(resolve, 1_500))
          said.push(`ended, client open: ${this.#client.isOpen}`)
        }
      }
      class FeatureModule {}
      const feature = { module: FeatureModule, imports: [ClientModule], providers: [Tasks] }
      const fleet = new Fleet()
      const ours = [ScheduleModule.forRoot(), fleet.leasehold()]
      const { app } = await startApp({
        imports: order === 'before' ? [feature, ...ours] : [...ours, feature],
      })
      Client.closed.push(() => said.push('client closed'))
      const locks = app.get(LockService)
      onTestFinished(
        onEvent('leasehold:run-end', ({ namespace, outcome }) => {
          if (namespace === locks.namespace) said.push(`run ${outcome}`)
        }),
      )
      const lease = await locks.acquire('held by a request')
      onTestFinished(
        onEvent('leasehold:release', ({ namespace }) => {
          if (namespace === locks.namespace) said.push('released')
        }),
      )
      await begun
      await app.close()
      expect(said).toEqual(['ended, client open: true', 'run succeeded', 'client closed', 'released'])
      expect(lease?.isHeld()).toBe(false)
    },
  )

  it('fires nothing more meanwhile, and ends what takes longer than the drain', async () => {
    const fired: string[] = []
    let begin: () => void = () => {}
    const begun = new Promise<void>((resolve) => (begin = resolve))
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      other() {
        fired.push('cron')
      }

      @Scheduled({ every: 100 })
      quick() {
        fired.push('task')
      }

      @Scheduled({ every: '1s', name: 'long' })
      async long({ signal }: TaskRun) {
        begin()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        fired.push('aborted')
      }
    }
    const { app } = await new Fleet({ drain: '1500ms' }).start({ providers: [Tasks] })
    await begun
    const closing = app.close()
    fired.splice(0)
    await closing
    expect(fired).toEqual(['aborted'])
  })

  it('is not held up by an application that has no tasks', async () => {
    const { app } = await startApp({ imports: [new Fleet().leasehold()] })
    const startedAt = performance.now()
    await app.close()
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })
})

describe('the health indicator', () => {
  it('says whether the store answers, to @nestjs/terminus', async () => {
    const { driver, faults } = faultyDriver(memoryDriver())
    const { app } = await startApp({
      imports: [
        TerminusModule.forRoot({ logger: false }),
        LeaseholdModule.forRoot({ driver, requestTimeout: 50 }),
      ],
    })
    const health = app.get(HealthCheckService)
    const indicator = app.get(LeaseholdHealthIndicator)
    const check = () => health.check([() => indicator.isHealthy('locks')])
    await expect(check()).resolves.toMatchObject({ status: 'ok', info: { locks: { status: 'up' } } })
    expect(await indicator.isHealthy()).toMatchObject({ leasehold: { status: 'up' } })
    faults.always('peek').fail()
    await expect(check()).rejects.toMatchObject({
      response: {
        status: 'error',
        error: { locks: { status: 'down', message: 'The store does not answer.' } },
      },
    })
  })
})
