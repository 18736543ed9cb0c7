import { Injectable } from '@nestjs/common'
import { Cron, Interval, SchedulerRegistry, Timeout } from '@nestjs/schedule'
import { CronJob } from 'cron'
import { LockService, TaskScheduler } from 'leasehold'
import { LeaseholdModule } from 'leasehold/nestjs'
import { describe, expect, it, vi } from 'vitest'
import { everySecond, Fleet } from './fleet.ts'
import { startApp } from './nest-app.ts'
import { isSlot, Runs } from './runs.ts'

describe('the registry of @nestjs/schedule', () => {
  async function registryOf(fleet = new Fleet(), metadata = {}) {
    const { app, log } = await fleet.start(metadata)
    const registry = app.get(SchedulerRegistry)
    const add = (name: string, onTick: () => unknown, more = {}) => {
      const job = CronJob.from({
        cronTime: everySecond,
        onTick,
        start: true,
        timeZone: 'UTC',
        ...more,
      } as never)
      registry.addCronJob(name, job)
      return job
    }
    return { app, log, registry, add }
  }

  it('guards cron jobs that are added at run time, under the name that it is given', async () => {
    const runs = new Runs()
    const fleet = new Fleet()
    for (let pod = 0; pod < 3; pod += 1) {
      const { add } = await registryOf(fleet)
      add('added', () => runs.note('added'))
      add('offset', () => runs.note('offset'), { timeZone: undefined, utcOffset: 120 })
    }
    for (const name of ['added', 'offset']) {
      const slots = await runs.reach(name, 3)
      expect(slots.every(isSlot)).toBe(true)
      expect(new Set(slots).size).toBe(slots.length)
    }
  })

  it('knows the slot of a fire that comes while the job misses its next one by moments', async () => {
    const runs = new Runs()
    const { add } = await registryOf()
    const job = add('busy', () => runs.note('busy'), { start: false })
    const { cronTime } = job
    const getTimeout = cronTime.getTimeout.bind(cronTime)
    let asked = 0
    // What the job sees when the process stands still between its two looks at the clock.
    cronTime.getTimeout = () => {
      const timeout = getTimeout()
      asked += 1
      return asked === 2 ? -28 : timeout
    }
    job.start()
    const slots = await runs.reach('busy', 4)
    expect(asked).toBeGreaterThan(2)
    expect(slots.every(isSlot)).toBe(true)
    expect(new Set(slots).size).toBe(slots.length)
  })

  it('takes all callbacks of a job for one unit, in its context', async () => {
    const runs = new Runs()
    const { add } = await registryOf()
    const context = { seen: [] as unknown[] }
    const job = add(
      'units',
      async function (this: unknown) {
        context.seen.push(this)
        runs.note('first')
      },
      { context },
    )
    job.addCallback(() => runs.note('second'))
    const first = await runs.reach('first', 2)
    const second = await runs.reach('second', 2)
    expect(first.every(isSlot)).toBe(true)
    expect(second.slice(0, 2)).toEqual(first.slice(0, 2))
    expect(context.seen[0]).toBe(context)
  })

  it('holds the lease until an async callback has ended', async () => {
    const { add, app } = await registryOf()
    let end: () => void = () => {}
    const begun = vi.fn(() => new Promise<void>((resolve) => (end = resolve)))
    const job = add('long', begun)
    await vi.waitFor(() => expect(begun).toHaveBeenCalledOnce(), 5_000)
    const states = async () => (await app.get(TaskScheduler).history('long')).map(({ state }) => state)
    expect(await states()).toContain('running')
    await vi.waitFor(async () => expect(await states()).toContain('skipped'), 5_000)
    expect(begun).toHaveBeenCalledOnce()
    void job.stop()
    end()
    await vi.waitFor(async () => expect(await states()).toContain('succeeded'), 5_000)
  })

  it('runs a job that is fired by hand under the lock of its name, without a slot', async () => {
    const runs = new Runs()
    const { add, app } = await registryOf()
    const job = add('by-hand', () => runs.note('by-hand'), { start: false })
    await job.fireOnTick()
    expect(await runs.reach('by-hand', 1)).toEqual([0])
    const lease = await app.get(LockService).acquire('by-hand', { wait: '1s' })
    await job.fireOnTick()
    await lease?.release()
    job.start()
    const [, slot] = await runs.reach('by-hand', 2)
    expect(isSlot(slot ?? 0)).toBe(true)
    void job.stop()
  })

  it('gives what a callback throws to the job’s own handler', async () => {
    const { add } = await registryOf()
    const handled = vi.fn()
    add('failing', () => Promise.reject(new RangeError('no paper')), { errorHandler: handled })
    await vi.waitFor(() => expect(handled).toHaveBeenCalledWith(expect.any(RangeError)), 5_000)
  })

  it('guards a disabled job that is started later, and one that gets another time', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Cron('0 0 1 1 *', { name: 'late', disabled: true })
      late() {
        runs.note('late')
      }
    }
    const { registry } = await registryOf(new Fleet(), { providers: [Tasks] })
    const job = registry.getCronJob('late')
    const { CronTime } = await import('cron')
    job.setTime(new CronTime(everySecond, 'UTC'))
    job.start()
    expect((await runs.reach('late', 2)).every(isSlot)).toBe(true)
  })

  it('fires an interval no more once it is deleted', async () => {
    const runs = new Runs()
    @Injectable()
    class Tasks {
      @Interval('beat', 200)
      beat() {
        runs.note('beat')
      }
    }
    const { registry } = await registryOf(new Fleet(), { providers: [Tasks] })
    const slots = await runs.reach('beat', 3)
    expect(slots.every((slot) => slot % 200 === 0)).toBe(true)
    registry.deleteInterval('beat')
    const before = runs.all.length
    await new Promise((resolve) => setTimeout(resolve, 700))
    expect(runs.all.length).toBe(before)
  })

  it('refuses a cron job that would share the runs of a decorated one', async () => {
    @Injectable()
    class Tasks {
      @Interval('taken', 60_000)
      beat() {}
    }
    const { add, registry } = await registryOf(new Fleet(), { providers: [Tasks] })
    expect(() => add('taken', () => {}, { start: false })).toThrow('would share its runs')
    expect(registry.doesExist('cron', 'taken')).toBe(false)
  })

  it('warns of intervals and timeouts that are added as running timers, not of decorated ones', async () => {
    @Injectable()
    class Tasks {
      @Interval('decorated', 60_000)
      beat() {}
      @Timeout('once', 60_000)
      once() {}
    }
    const { log, registry } = await registryOf(new Fleet({ unguarded: ['known'] }), { providers: [Tasks] })
    for (const name of ['raw', 'known'])
      registry.addInterval(
        name,
        setInterval(() => {}, 60_000),
      )
    registry.addTimeout(
      'later',
      setTimeout(() => {}, 60_000),
    )
    const warnings = log.lines.filter((line) => line.startsWith('warn Leasehold'))
    expect(warnings).toHaveLength(2)
    expect(warnings[0]).toContain('The interval "raw"')
    expect(warnings[1]).toContain('The timeout "later"')
  })
})

describe('@Timeout', () => {
  it('takes the lock alone: pods that come together run it once', async () => {
    const runs = new Runs()
    let end: () => void = () => {}
    @Injectable()
    class Tasks {
      @Timeout(300)
      async warmUp() {
        runs.note('warm')
        await new Promise<void>((resolve) => (end = resolve))
      }
    }
    const fleet = new Fleet()
    const pods = [await fleet.start({ providers: [Tasks] }), await fleet.start({ providers: [Tasks] })]
    await vi.waitFor(() => {
      const lines = pods.flatMap(({ log }) => log.lines)
      expect(lines).toContain('debug Leasehold Tasks.warmUp is held by another process: not run here')
    }, 5_000)
    expect(runs.of('warm')).toEqual([0])
    end()
  })
})

describe('an application that cannot be guarded does not start', () => {
  it('when its schedule module is of an unknown make', async () => {
    const OtherRegistry = { SchedulerRegistry: class {} }.SchedulerRegistry
    class ScheduleExplorer {
      explore() {}
    }
    class ScheduleModule {}
    const start = startApp({
      imports: [
        new Fleet().leasehold(),
        { module: ScheduleModule, providers: [OtherRegistry, ScheduleExplorer] },
      ],
    })
    await expect(start).rejects.toMatchObject({ code: 'UNGUARDABLE' })
    await expect(start).rejects.toThrow('guard: false')
  })

  it('when two modules would guard it', async () => {
    const fleet = new Fleet()
    const start = fleet.start({
      imports: [LeaseholdModule.forRoot({ ...fleet.options, name: 'b', guard: 'all' })],
    })
    await expect(start).rejects.toMatchObject({ code: 'UNGUARDABLE' })
  })

  it('when a cron job has no callbacks to stand in for', async () => {
    const { app } = await new Fleet().start({})
    const registry = app.get(SchedulerRegistry)
    expect(() => registry.addCronJob('odd', { start() {}, stop() {} } as never)).toThrow('cron job "odd"')
    expect(registry.doesExist('cron', 'odd')).toBe(false)
  })

  it('but one without a schedule module does', async () => {
    const { app } = await startApp({ imports: [new Fleet().leasehold()] })
    expect(app.get(LockService)).toBeInstanceOf(LockService)
  })
})
