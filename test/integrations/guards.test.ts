import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CronJob } from 'cron'
import { Cron } from 'croner'
import { InvalidOptionError, type ScheduledTaskStore } from 'leasehold'
import {
  everySlot,
  guardCroner,
  guardCronJob,
  guardNodeCron,
  guardNodeSchedule,
  nodeCronCoordinator,
} from 'leasehold/integrations'
import { createTask, schedule } from 'node-cron'
import { scheduleJob } from 'node-schedule'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { collected, pods } from './pods.ts'

const everySecond = '* * * * * *'
/** As a user's own zone: no fire of these tests is near a change of its clocks. */
const timeZone = 'Asia/Kolkata'

interface Fires {
  /** Adds a job to a process. Answers how to fire it by hand, and how to stop it. */
  add(
    store: ScheduledTaskStore,
    name: string,
    work: () => unknown,
    onError?: (error: unknown) => void,
    onStoreError?: (error: unknown) => void,
  ): { readonly byHand: () => unknown; readonly stop: () => unknown }
}

const ways: Record<string, Fires> = {
  'node-cron': {
    add(store, name, work, onError, onStoreError) {
      const logger = { info() {}, warn() {}, debug() {}, error() {} }
      const options = onStoreError === undefined ? {} : { onStoreError }
      const task = schedule(everySecond, guardNodeCron(store, name, work, options), {
        timezone: timeZone,
        logger,
      })
      task.on('execution:failed', ({ execution }) => onError?.(execution?.error))
      return { byHand: () => task.execute(), stop: () => task.destroy() }
    },
  },
  cron: {
    add(store, name, work, onError = () => {}, onStoreError) {
      const onTick = async (): Promise<void> => void (await work())
      const job = CronJob.from({ cronTime: everySecond, onTick, timeZone, errorHandler: onError })
      guardCronJob(store, name, job, onStoreError === undefined ? {} : { onStoreError })
      job.start()
      return { byHand: () => job.fireOnTick(), stop: () => job.stop() }
    },
  },
  croner: {
    add(store, name, work, onError = () => {}, onStoreError) {
      const job = new Cron(everySecond, { timezone: timeZone, catch: onError })
      guardCroner(store, name, job, work, onStoreError === undefined ? {} : { onStoreError })
      return { byHand: () => job.trigger(), stop: () => job.stop() }
    },
  },
  'node-schedule': {
    add(store, name, work, onError = () => {}, onStoreError) {
      const options = { cron: everySecond, timeZone, ...(onStoreError === undefined ? {} : { onStoreError }) }
      const job = scheduleJob(
        { rule: everySecond, tz: timeZone },
        guardNodeSchedule(store, name, work, options),
      )
      job.on('error', onError)
      return { byHand: () => Reflect.apply(job.invoke, job, []) as unknown, stop: () => job.cancel() }
    },
  },
}

describe.concurrent.each(Object.entries(ways))('a job of %s', (_way, { add }) => {
  it('runs in one process a slot, and the log has its slots by the cron', async ({
    onTestFinished: onEnd,
  }) => {
    const { pod, history } = pods(onEnd)
    const ran = collected<number>(3)
    const jobs = [pod(), pod(), pod()].map((store) => add(store, 'job', () => ran.push(Date.now())))
    const times = await ran.all
    for (const { stop } of jobs) stop()
    const slots = times.map((time) => Math.floor(time / 1_000))
    expect(new Set(slots).size).toBe(3)
    const entries = (await history('job')).filter(({ state }) => state !== 'registered').toReversed()
    expect(entries.slice(0, 3).map(({ slot, state }) => [slot.getTime() / 1_000, state])).toEqual(
      slots.map((slot) => [slot, expect.stringMatching(/^(succeeded|running)$/)]),
    )
  })

  it('fired by hand runs where it was called, at once, and touches no slot', async ({
    onTestFinished: onEnd,
  }) => {
    const { pod, history } = pods(onEnd)
    const other = collected<true>(1)
    let byHand = false
    const [one, two] = [pod(), pod()]
    const job = add(one, 'by hand', () => void (byHand = true))
    job.stop()
    await job.byHand()
    await vi.waitFor(() => expect(byHand).toBe(true))
    expect(await history('by hand')).toEqual([])
    // And does not stand in the way of the next slot.
    const next = add(two, 'by hand', () => other.push(true))
    await other.all
    next.stop()
  })

  it('passes what it throws on to its scheduler, and the run has failed', async ({
    onTestFinished: onEnd,
  }) => {
    const { pod, history } = pods(onEnd)
    const errors = collected<unknown>(1)
    const boom = new Error('boom')
    const job = add(
      pod(),
      'throws',
      () => {
        throw boom
      },
      (error) => errors.push(error),
    )
    expect(await errors.all).toEqual([boom])
    job.stop()
    const failed = (await history('throws')).find(({ state }) => state === 'failed')
    expect(failed?.error).toContain('boom')
  })

  it('is left out when the store cannot be asked: its scheduler hears of no error, onStoreError does', async ({
    onTestFinished: onEnd,
  }) => {
    const { pod, driver } = pods(onEnd)
    driver.faults.always('register').fail('unusable')
    const storeErrors = collected<unknown>(1)
    const errors: unknown[] = []
    let ran = 0
    const job = add(
      pod(),
      'left out',
      () => ran++,
      (error) => errors.push(error),
      (error) => storeErrors.push(error),
    )
    expect(await storeErrors.all).toEqual([expect.objectContaining({ code: 'STORE_UNUSABLE' })])
    job.stop()
    expect([ran, errors]).toEqual([0, []])
  })

  it('fires nothing any more, and says nothing, when the store was stopped', async ({
    onTestFinished: onEnd,
  }) => {
    const { pod } = pods(onEnd)
    const store = pod()
    const ran = collected<true>(1)
    const errors: unknown[] = []
    const job = add(
      store,
      'stopped',
      () => ran.push(true),
      (error) => errors.push(error),
      (error) => errors.push(error),
    )
    await ran.all
    await store.stop()
    const byHand = collected<unknown>(1)
    void Promise.resolve(job.byHand()).then((value) => byHand.push(value))
    await byHand.all
    job.stop()
    expect(errors).toEqual([])
  })
})

describe('guardNodeCron', () => {
  it('gives back what the function returns, and passes its context and the run', async () => {
    const { pod } = pods()
    const seen = collected<unknown>(1)
    const guarded = guardNodeCron(pod(), 'value', (context: { date: Date }, run) => {
      seen.push([context.date.getTime(), run.slot?.getTime(), run.fence > 0])
      return 42
    })
    const task = createTask(everySecond, guarded, { name: 'value' })
    const finished = collected<unknown>(1)
    task.on('execution:finished', ({ execution }) => finished.push(execution?.result))
    await task.start()
    expect(await finished.all).toEqual([42])
    await task.destroy()
    const [[date, slot, hasFence]] = (await seen.all) as [[number, number, boolean]]
    expect([slot, date % 1_000, hasFence]).toEqual([date, 0, true])
  })

  it('names the slots alone where node-cron reads the cron in another way: both days have to match', async () => {
    const { pod, history } = pods()
    const store = pod()
    const fire = (pattern: string, name: string, date: string) =>
      guardNodeCron(store, name, () => {})({ date: new Date(date), task: { getPattern: () => pattern } })
    await fire('0 0 13 * 5', 'both', '2026-02-13T00:00:00Z')
    await fire('0 0 13 * 5', 'both', '2026-03-13T00:00:00Z')
    // By its own reading no slot lies between; by ours every Friday would.
    expect((await history('both')).map(({ state }) => state)).not.toContain('missed')
    await fire('@daily', 'daily', '2026-02-13T00:00:00Z')
    await fire('@daily', 'daily', '2026-02-15T00:00:00Z')
    expect((await history('daily')).map(({ state }) => state)).toContain('missed')
  })
})

describe('nodeCronCoordinator', () => {
  const key = (slot: string) => `nightly: backup:${slot}`

  it('elects one process a slot, also when the run is over, and holds the slot until it completes', async () => {
    const { pod, history } = pods()
    const [one, two] = [nodeCronCoordinator(pod()), nodeCronCoordinator(pod())]
    const first = key('2026-02-13T00:00:00.000Z')
    expect(await one.shouldRun(first, 30_000)).toBe(true)
    expect(await two.shouldRun(first, 30_000)).toBe(false)
    const second = key('2026-02-14T00:00:00.000Z')
    // The first still runs.
    expect(await two.shouldRun(second, 30_000)).toBe(false)
    one.onComplete(first)
    await vi.waitFor(async () =>
      expect((await history('nightly: backup')).map(({ state, reason }) => reason ?? state)).toEqual([
        'overlap',
        'succeeded',
        'registered',
      ]),
    )
    expect(await two.shouldRun(first, 30_000)).toBe(false)
    expect(await two.shouldRun(key('2026-02-15T00:00:00.000Z'), 30_000)).toBe(true)
    two.onComplete(key('2026-02-15T00:00:00.000Z'))
  })

  it('elects for background tasks, which ask from a process of their own', async () => {
    const { pod, history } = pods()
    const folder = await mkdtemp(join(tmpdir(), 'leasehold-background-'))
    const file = join(folder, 'task.mjs')
    await writeFile(file, 'export const task = (context) => String(context.date)')
    const ran = collected<unknown>(3)
    const logger = { info() {}, warn() {}, debug() {}, error() {} }
    const tasks = [pod(), pod()].map((store) => {
      const runCoordinator = nodeCronCoordinator(store)
      const task = createTask(everySecond, file, {
        name: 'background',
        distributed: true,
        runCoordinator,
        logger,
        startTimeout: 30_000,
      })
      task.on('execution:finished', ({ execution }) => ran.push(execution?.result))
      return task
    })
    onTestFinished(async () => {
      // It rejects where it has waited for its process for five seconds and killed it.
      await Promise.allSettled(tasks.map(async (task) => task.destroy()))
      await rm(folder, { recursive: true })
    })
    for (const task of tasks) await task.start()
    const results = await ran.all
    expect(new Set(results).size).toBe(3)
    const states = (await history('background')).map(({ state }) => state)
    expect(states.filter((state) => state === 'succeeded').length).toBeGreaterThanOrEqual(2)
  })

  it('throws when the store cannot be asked, so that node-cron skips the fire', async () => {
    const { pod, driver } = pods()
    driver.faults.always('register').fail('unusable')
    const coordinator = nodeCronCoordinator(pod())
    await expect(coordinator.shouldRun(key('2026-02-13T00:00:00.000Z'), 30_000)).rejects.toMatchObject({
      code: 'STORE_UNUSABLE',
    })
  })

  it('refuses a key that names no slot', async () => {
    const { pod } = pods()
    await expect(nodeCronCoordinator(pod()).shouldRun('nightly', 30_000)).rejects.toThrow(InvalidOptionError)
  })
})

describe('guardCronJob', () => {
  it('makes one run of all callbacks, those that are added later too, which lasts until all have ended', async () => {
    const { pod, history } = pods()
    const store = pod()
    const order: string[] = []
    const ended = collected<true>(1)
    const step = (name: string, ms: number) => async () => {
      await new Promise((resolve) => setTimeout(resolve, ms))
      order.push(name)
      if (order.length === 2) ended.push(true)
    }
    const job: CronJob = new CronJob(everySecond, step('slow', 300))
    guardCronJob(store, 'both', job)
    job.addCallback(step('quick', 100))
    job.start()
    await ended.all
    void job.stop()
    expect(order.slice(0, 2)).toEqual(['quick', 'slow'])
    await vi.waitFor(async () => {
      const run = (await history('both')).find(({ state }) => state === 'succeeded')
      expect(run?.durationMs).toBeGreaterThanOrEqual(290)
    })
  })

  it('knows the slot of a date, and of a job that runs when it is guarded', async () => {
    const { pod, history } = pods()
    const at = new Date(Date.now() + 300)
    const ran = collected<true>(2)
    const once: CronJob = new CronJob(at, () => ran.push(true))
    guardCronJob(pod(), 'once', once).start()
    const running: CronJob = new CronJob(everySecond, () => void ran.push(true), null, true)
    guardCronJob(pod(), 'running', running)
    await ran.all
    void running.stop()
    expect((await history('once')).at(0)?.slot).toEqual(at)
    const rang = Math.floor(Number(running.lastExecution) / 1_000) * 1_000
    expect((await history('running')).at(-2)?.slot).toEqual(new Date(rang))
  })

  it('asks for the slot that its timer was set for, however late that rings', async () => {
    const { pod, history } = pods()
    const ran = collected<number>(2)
    const job: CronJob = new CronJob(everySecond, () => ran.push(Date.now()))
    guardCronJob(pod(), 'late', job).start()
    await vi.waitFor(async () => expect(await history('late')).toHaveLength(2), {
      timeout: 3_000,
      interval: 20,
    })
    const first = (await history('late')).at(0)?.slot.getTime() ?? 0
    // A process whose event loop is busy, past the next slot and the one after it.
    while (Date.now() < first + 2_300);
    await ran.all
    void job.stop()
    const ranLate = (await history('late')).find(({ slot }) => slot.getTime() === first + 1_000)
    expect(ranLate?.attempt).toBe(1)
  })

  it('refuses what is no CronJob', () => {
    const { pod } = pods()
    const refused = expect(() => guardCronJob(pod(), 'job', {} as CronJob))
    refused.toThrow(InvalidOptionError)
  })
})

describe('guardCroner', () => {
  it('refuses a job whose slots only its own process knows, one that has a function, and what is no job', () => {
    const { pod } = pods()
    const store = pod()
    const counting = new Cron(everySecond, { interval: 5, paused: true })
    expect(() => guardCroner(store, 'job', counting, () => {})).toThrow(InvalidOptionError)
    const taken = new Cron(everySecond, { paused: true }, () => {})
    onTestFinished(() => taken.stop())
    expect(() => guardCroner(store, 'job', taken, () => {})).toThrow('two functions')
    expect(() => guardCroner(store, 'job', {} as Cron, () => {})).toThrow(InvalidOptionError)
  })

  it('knows the slot of a date', async () => {
    const { pod, history } = pods()
    const at = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 500)
    const ran = collected<unknown>(1)
    guardCroner(pod(), 'once', new Cron(at), (_self, _context, { slot }) => ran.push(slot))
    const [slot] = await ran.all
    expect(slot).toEqual((await history('once')).at(0)?.slot)
  })
})

describe('everySlot', () => {
  it('fires at the multiples of its interval, without drift and without a gap, in one process each', async () => {
    const { pod, history } = pods()
    const ran = collected<{ slot: number; at: number }>(12)
    const timers = [pod(), pod()].map((store) =>
      everySlot(store, 'tick', '200ms', ({ slot }) =>
        ran.push({ slot: slot?.getTime() ?? 0, at: Date.now() }),
      ),
    )
    const runs = await ran.all
    for (const timer of timers) timer.stop()
    expect(runs.map(({ slot }) => slot % 200)).toEqual(runs.map(() => 0))
    expect(new Set(runs.map(({ slot }) => slot)).size).toBe(12)
    expect((await history('tick')).filter(({ state }) => state === 'missed')).toEqual([])
  })

  it('gives what the function throws to onError, and goes on', async () => {
    const { pod } = pods()
    const errors = collected<unknown>(2)
    const timer = everySlot(
      pod(),
      'throws',
      200,
      () => {
        throw new Error('boom')
      },
      { onError: (error) => errors.push(String(error)) },
    )
    expect(await errors.all).toEqual(['Error: boom', 'Error: boom'])
    timer.stop()
  })

  it('refuses an interval that is none', () => {
    const { pod } = pods()
    expect(() => everySlot(pod(), 'tick', '10ms', () => {})).toThrow(InvalidOptionError)
    expect(() => everySlot(pod(), '', '1s', () => {})).toThrow(InvalidOptionError)
  })
})
