import { Controller, Injectable, type Type } from '@nestjs/common'
import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule'
import { CronJob } from 'cron'
import { TaskScheduler } from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { currentRun, Guarded, LeaseholdModule, Unguarded } from 'leasehold/nestjs'
import { describe, expect, it, vi } from 'vitest'
import { freshNamespace } from '../support/stores.ts'
import { everySecond, Fleet } from './fleet.ts'
import { startApp } from './nest-app.ts'
import { isSlot, Runs } from './runs.ts'

describe('importing the module (A1)', () => {
  it('runs every cron of a provider, a controller and an interval in one of three pods', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      handleCron() {
        runs.note('Tasks.handleCron')
      }

      @Cron(everySecond, { name: 'named' })
      other() {
        runs.note('named')
      }

      @Interval(1_000)
      handleInterval() {
        runs.note('Tasks.handleInterval')
      }
    }
    @Controller()
    class Pages {
      @Cron(everySecond)
      refresh() {
        runs.note('Pages.refresh')
      }
    }
    const fleet = new Fleet()
    const metadata = { providers: [Tasks], controllers: [Pages] }
    const pods = [await fleet.start(metadata), await fleet.start(metadata), await fleet.start(metadata)]
    for (const name of ['Tasks.handleCron', 'named', 'Tasks.handleInterval', 'Pages.refresh']) {
      const slots = await runs.reach(name, 3)
      expect(new Set(slots).size).toBe(slots.length)
      expect(slots.every(isSlot)).toBe(true)
      const history = await pods[0]!.app.get(TaskScheduler).history(name)
      expect(history.filter(({ state }) => state === 'succeeded').length).toBeGreaterThanOrEqual(2)
    }
  })

  it.each([
    ['before', true],
    ['after', true],
    ['before', false],
    ['after', false],
  ])('guards %s the schedule module, global: %s', async (order, isGlobal) => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      handleCron() {
        runs.note('cron')
      }
    }
    const fleet = new Fleet()
    const ours = LeaseholdModule.forRoot({ ...fleet.options, isGlobal })
    const theirs = ScheduleModule.forRoot()
    const imports = order === 'before' ? [ours, theirs] : [theirs, ours]
    await startApp({ imports, providers: [Tasks] })
    await startApp({ imports, providers: [Tasks] })
    const slots = await runs.reach('cron', 2)
    expect(slots.every(isSlot)).toBe(true)
    expect(new Set(slots).size).toBe(slots.length)
  })

  it('guards under several schedule modules, which would each fire every job', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      handleCron() {
        runs.note('cron')
      }

      @Interval(200)
      beat() {
        runs.note('beat')
      }
    }
    const { log } = await new Fleet().start({
      imports: [ScheduleModule.forRoot({ intervals: false }), ScheduleModule.forRoot({ cronJobs: false })],
      providers: [Tasks],
    })
    for (const name of ['cron', 'beat']) {
      const slots = await runs.reach(name, 2)
      expect(new Set(slots).size).toBe(slots.length)
    }
    const [line = ''] = log.lines.filter((each) => each.includes('Once for the whole fleet'))
    expect(line.split(': ')[1]?.split(', ').toSorted()).toEqual(['Tasks.beat', 'Tasks.handleCron'])
  })

  it('waits for a slot that has not come on the clock of the store, and loses none', async () => {
    const behindMs = 700
    const runs: { slot: number; at: number }[] = []
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      handleCron() {
        runs.push({ slot: currentRun()?.slot?.getTime() ?? 0, at: Date.now() - behindMs })
      }

      @Interval(1_000)
      beat() {
        runs.push({ slot: currentRun()?.slot?.getTime() ?? 0, at: Date.now() - behindMs })
      }
    }
    const driver = memoryDriver({ store: freshNamespace(), now: () => Date.now() - behindMs })
    await new Fleet({ driver }).start({ providers: [Tasks] })
    await vi.waitFor(() => expect(runs.length).toBeGreaterThanOrEqual(8), 10_000)
    for (const { slot, at } of runs) expect(at).toBeGreaterThanOrEqual(slot)
    const slots = runs.map(({ slot }) => slot).toSorted((a, b) => a - b)
    const missing = slots.slice(1).filter((slot, index) => slot - (slots[index] ?? 0) > 1_000)
    expect(missing).toEqual([])
  })

  it('leaves the instances alone: a direct call claims nothing', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron('0 0 1 1 *')
      handleCron() {
        runs.note('direct')
        return 'its answer'
      }
    }
    const { app } = await new Fleet().start({ providers: [Tasks] })
    const tasks = app.get(Tasks)
    expect(Object.hasOwn(tasks, 'handleCron')).toBe(false)
    expect(tasks.handleCron()).toBe('its answer')
    expect(runs.all).toEqual([{ name: 'direct', slot: 0 }])
    const states = async () =>
      (await app.get(TaskScheduler).history('Tasks.handleCron')).map(({ state }) => state)
    await vi.waitFor(async () => expect(await states()).toEqual(['registered']))
  })

  it('records what a job throws, once logged as Nest logs it', async () => {
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      fail() {
        throw new RangeError('no paper')
      }

      @Interval(1_000)
      async failLater() {
        throw new RangeError('no ink')
      }
    }
    const { app, log } = await new Fleet().start({ providers: [Tasks] })
    const tasks = app.get(TaskScheduler)
    for (const [name, error] of [
      ['Tasks.fail', 'no paper'],
      ['Tasks.failLater', 'no ink'],
    ] as const) {
      await vi.waitFor(async () => {
        const history = await tasks.history(name)
        expect(history).toContainEqual(
          expect.objectContaining({ state: 'failed', error: expect.stringContaining(error) }),
        )
      }, 10_000)
      const failures = (await tasks.history(name)).filter(({ state }) => state === 'failed').length
      const lines = log.lines.filter((line) => line === `error Scheduler ${error}`)
      expect(Math.abs(lines.length - failures)).toBeLessThanOrEqual(1)
    }
    expect(log.lines.filter((line) => line.startsWith('error Leasehold'))).toEqual([])
  })

  it('says in the log what it guards', async () => {
    @Injectable()
    class Tasks {
      @Cron('0 0 1 1 *')
      yearly() {}
    }
    const { log } = await new Fleet().start({ providers: [Tasks] })
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: Tasks.yearly')
  })

  it('guards a provider under two tokens once', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron(everySecond)
      handleCron() {
        runs.note('cron')
      }
    }
    const { log } = await new Fleet().start({
      providers: [
        Tasks,
        { provide: 'ALIAS', useExisting: Tasks },
        { provide: 'SAME', useFactory: (one: Tasks) => one, inject: [Tasks] },
      ],
    })
    const slots = await runs.reach('cron', 2)
    expect(new Set(slots).size).toBe(slots.length)
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: Tasks.handleCron')
  })
})

describe('what is guarded', () => {
  @Injectable()
  class Tasks {
    static runs = new Runs()

    @Cron(everySecond)
    plain() {
      Tasks.runs.note('plain')
    }

    @Unguarded()
    @Cron(everySecond)
    unguarded() {
      Tasks.runs.note('unguarded')
    }

    @Cron(everySecond)
    @Guarded({ ttl: '10s', name: 'renamed' })
    guarded() {
      Tasks.runs.note('guarded')
    }
  }

  @Unguarded()
  @Injectable()
  class PerPod {
    @Interval(1_000)
    beat() {
      Tasks.runs.note('beat')
    }

    @Guarded()
    @Interval(1_000)
    once() {
      Tasks.runs.note('once')
    }
  }

  it('is all but what is marked @Unguarded()', async () => {
    const runs = (Tasks.runs = new Runs())
    const { log } = await new Fleet().start({ providers: [Tasks, PerPod] })
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: Tasks.plain, renamed, PerPod.once')
    expect((await runs.reach('plain', 1)).every(isSlot)).toBe(true)
    expect((await runs.reach('guarded', 1)).every(isSlot)).toBe(true)
    expect((await runs.reach('once', 1)).every(isSlot)).toBe(true)
    expect(await runs.reach('unguarded', 1)).toContain(0)
    expect(await runs.reach('beat', 1)).toContain(0)
  })

  it("is only what is marked @Guarded() with guard: 'explicit'", async () => {
    const runs = (Tasks.runs = new Runs())
    const { app, log } = await new Fleet({ guard: 'explicit' }).start({ providers: [Tasks, PerPod] })
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: renamed, PerPod.once')
    const job = CronJob.from({ cronTime: everySecond, onTick: () => runs.note('added'), start: true })
    app.get(SchedulerRegistry).addCronJob('added', job)
    expect(await runs.reach('plain', 1)).toContain(0)
    expect(await runs.reach('added', 1)).toContain(0)
    expect((await runs.reach('guarded', 1)).every(isSlot)).toBe(true)
  })

  it('is nothing with guard: false', async () => {
    const runs = (Tasks.runs = new Runs())
    await new Fleet({ guard: false }).start({ providers: [Tasks] })
    expect(await runs.reach('plain', 1)).toEqual([0])
    expect(await runs.reach('guarded', 1)).toEqual([0])
  })

  it('is not what the option unguarded names', async () => {
    const runs = (Tasks.runs = new Runs())
    const { app } = await new Fleet({ unguarded: ['Tasks.plain', 'added', 'ticks'] }).start({
      providers: [Tasks],
    })
    const job = CronJob.from({ cronTime: everySecond, onTick: () => runs.note('added'), start: true })
    app.get(SchedulerRegistry).addCronJob('added', job)
    expect(await runs.reach('plain', 1)).toEqual([0])
    expect(await runs.reach('added', 1)).toContain(0)
    expect((await runs.reach('guarded', 1)).every(isSlot)).toBe(true)
  })
})

describe('names', () => {
  function tasksClass(note: (name: string) => void, label: string): Type {
    @Injectable()
    class TasksService {
      @Cron(everySecond)
      handleCron() {
        note(label)
      }
    }
    return TasksService
  }

  it('that come out equal are qualified by their modules', async () => {
    const runs = new Runs()
    const note = (label: string) => runs.note(label)
    class BillingModule {}
    class MailModule {}
    const { log } = await new Fleet().start({
      imports: [
        { module: BillingModule, providers: [tasksClass(note, 'billing')] },
        { module: MailModule, providers: [tasksClass(note, 'mail')] },
      ],
    })
    const [line = ''] = log.lines.filter((each) => each.includes('Once for the whole fleet'))
    expect(line.split(': ')[1]?.split(', ').toSorted()).toEqual([
      'BillingModule/TasksService.handleCron',
      'MailModule/TasksService.handleCron',
    ])
    await runs.reach('billing', 1)
    await runs.reach('mail', 1)
  })

  it('that are still equal refuse the start, unless they are told apart', async () => {
    class Plugin {}
    const plugin = (label: string) => {
      const token = `tasks:${label}`
      @Injectable()
      class TasksService {
        label = label

        @Cron('0 0 1 1 *')
        handleCron() {}
      }
      return { module: Plugin, providers: [{ provide: token, useClass: TasksService }] }
    }
    const start = new Fleet().start({ imports: [plugin('one'), plugin('other')] })
    await expect(start).rejects.toMatchObject({ code: 'UNGUARDABLE' })
    await expect(start).rejects.toThrow('"Plugin/TasksService.handleCron"')

    @Injectable()
    class Shared {
      label = ''

      @Guarded({ name: ({ label }: Shared) => `shared:${label}` })
      @Cron('0 0 1 1 *')
      handleCron() {}
    }
    const shared = (label: string) => ({
      provide: label,
      useFactory: () => Object.assign(new Shared(), { label }),
    })
    const { log } = await new Fleet().start({ providers: [shared('a'), shared('b')] })
    expect(log.lines).toContain('log Leasehold Once for the whole fleet: shared:a, shared:b')
  })
})
