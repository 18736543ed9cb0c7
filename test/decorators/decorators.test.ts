import {
  DriverMissingError,
  DuplicateTaskError,
  InvalidOptionError,
  KeyHeldError,
  LockService,
  onEvent,
  ReentrantAcquireError,
  scheduledMethods,
  TaskScheduler,
  useLocks,
} from 'leasehold'
import { memoryDriver } from 'leasehold/memory'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { freshNamespace } from '../support/stores.ts'
import { compileFixtures, type Fixtures, kinds } from './compiled.ts'

function newLocks(): LockService {
  const locks = new LockService({ driver: memoryDriver(), namespace: freshNamespace() })
  onTestFinished(() => locks.close())
  return locks
}

function newTasks(): TaskScheduler {
  const tasks = new TaskScheduler({ locks: newLocks() })
  onTestFinished(() => tasks.stop({ drain: 0 }))
  return tasks
}

describe.each(Object.keys(kinds) as (keyof typeof kinds)[])('under %s', (kind) => {
  let fixtures: Fixtures
  let remove: () => Promise<void>

  beforeAll(async () => {
    ;({ fixtures, remove } = await compileFixtures(kind))
  })
  afterAll(() => remove())
  beforeEach(() => void fixtures.calls.splice(0))

  describe('@Scheduled', () => {
    it('registers the methods in the order of declaration, named by class and method or as told', () => {
      expect(newTasks().register(new fixtures.Books())).toEqual([
        'Books.close',
        'audit',
        'Books.below',
        'Books.above',
      ])
    })

    it('runs the method on its instance, with the run', async () => {
      const tasks = newTasks()
      const books = new fixtures.Books()
      tasks.register(books)
      await tasks.start()
      await vi.waitFor(() => expect(fixtures.calls.map(({ method }) => method)).toContain('close'), 5_000)
      const call = fixtures.calls.find(({ method }) => method === 'close')
      expect(call).toEqual({ method: 'close', on: books, args: ['Books.close', expect.any(Date)] })
    })

    it('runs what another decorator wrapped around the method, above and below', async () => {
      for (const { key, handler } of scheduledMethods(new fixtures.Books())) {
        if (key !== 'above' && key !== 'below') continue
        await handler({} as never)
      }
      expect(fixtures.calls.map(({ method }) => method)).toEqual(['hidden', 'below', 'hidden', 'above'])
    })

    it('gives a subclass the tasks of its base class, with what overrides them', () => {
      const more = new fixtures.MoreBooks()
      const methods = scheduledMethods(more)
      expect(methods.map(({ name }) => name)).toEqual([
        'MoreBooks.close',
        'audit-more',
        'MoreBooks.below',
        'MoreBooks.above',
        'MoreBooks.own',
      ])
      expect(methods[1]?.options).toEqual({ every: '2s' })
      void methods[0]?.handler({ task: 'x' } as never)
      expect(fixtures.calls).toEqual([{ method: 'closeMore', on: more, args: ['x'] }])
    })

    it('leaves the base class as it was', () => {
      expect(scheduledMethods(new fixtures.Books()).map(({ name }) => name)).not.toContain('audit-more')
    })

    it('refuses two instances of one class, and adds nothing then', () => {
      const tasks = newTasks()
      tasks.schedule('audit', { every: '1s' }, () => {})
      expect(() => tasks.register(new fixtures.Books())).toThrow(DuplicateTaskError)
      expect(tasks.register(new fixtures.MoreBooks())).toHaveLength(5)
      expect(() => tasks.register(new fixtures.MoreBooks())).toThrow(DuplicateTaskError)
      // 'Books.close' was not added by the call that failed.
      tasks.schedule('Books.close', { every: '1s' }, () => {})
    })

    it('refuses an instance without tasks', () => {
      const tasks = newTasks()
      for (const instance of [new fixtures.Reports(), {}, null, fixtures.Books]) {
        expect(() => tasks.register(instance as object)).toThrow(InvalidOptionError)
      }
    })

    it('refuses an instance whose method was replaced by something else', () => {
      const books = Object.assign(new fixtures.Books(), { close: 'closed' })
      expect(() => newTasks().register(books)).toThrow('close is decorated with @Scheduled')
    })
  })

  it.each([
    ['an impossible cron', 'cron', 'task'],
    ['an unknown option', 'evry', 'task'],
    ['no options', 'cron', 'task'],
    ['an empty name', 'name', 'task'],
    ['a static task', 'target', 'task'],
    ['two schedules', 'target', 'task'],
    ['a getter as a task', 'target', 'Scheduled'],
    ['a field as a task', 'target', 'Scheduled'],
    ['a class as a task', 'target', 'Scheduled'],
    ['an empty key', 'key', 'method'],
    ['a ttl that is too short', 'ttl', 'method'],
    ['a wait without waiting', 'wait', 'method'],
    ['waiting without a wait', 'wait', 'method'],
    ['another way of contention', 'onContention', 'method'],
    ['an unknown option of @Exclusive', 'tll', 'method'],
    ['a getter as exclusive', 'target', 'Exclusive'],
  ])('%s is refused when the class is defined', (what, option, named) => {
    let refusal: unknown
    try {
      fixtures.refused[what]?.()
    } catch (error) {
      refusal = error
    }
    expect(refusal).toBeInstanceOf(InvalidOptionError)
    expect(refusal).toMatchObject({ option })
    expect((refusal as Error).message).toContain(named)
  })

  it('has all that is refused in the list above', () => {
    expect(Object.keys(fixtures.refused)).toHaveLength(16)
  })

  describe('@Exclusive', () => {
    function newReports(locks = newLocks()) {
      const reports = new fixtures.Reports()
      useLocks(reports, locks)
      return reports
    }

    it('runs a method under its key: who comes meanwhile skips, is refused, or waits', async () => {
      const locks = newLocks()
      const [one, other] = [newReports(locks), newReports(locks)]
      const first = one.skip('first')
      await vi.waitFor(() => expect(one.running).toEqual(['first']))
      await expect(other.skip('second')).resolves.toBeUndefined()
      await expect(other.refuse('third')).rejects.toThrow(KeyHeldError)
      await expect(other.refuse('third')).rejects.toMatchObject({ code: 'KEY_HELD', key: 'report' })
      await expect(other.queueBriefly('fourth')).rejects.toThrow(KeyHeldError)
      const queued = other.queue('fifth')
      expect(other.running).toEqual([])
      one.end()
      await expect(first).resolves.toBe('first')
      await vi.waitFor(() => expect(other.running).toEqual(['fifth']))
      other.end()
      await expect(queued).resolves.toBe('fifth')
    })

    it('makes the key of the arguments, and is the current lease inside', async () => {
      const reports = newReports()
      const [seven, eight] = [reports.byId(7, 'a'), reports.byId(8, 'b')]
      await vi.waitFor(() => expect(reports.running).toHaveLength(2))
      expect(reports.running.toSorted()).toEqual(['a 7 report:7', 'b 8 report:8'])
      reports.end()
      await Promise.all([seven, eight])
    })

    it('gives the lease back and the error on when the method fails', async () => {
      const locks = newLocks()
      await expect(newReports(locks).fail()).rejects.toThrow(RangeError)
      expect(await locks.peek('report')).toBeNull()
    })

    it('refuses a call from inside', async () => {
      const locks = newLocks()
      const reports = newReports(locks)
      const inside = locks.runExclusive('report', () => reports.refuse('again'))
      await expect(inside).rejects.toThrow(ReentrantAcquireError)
    })

    it('finds its service by the option, by the instance, its prototype or its class; and fails loudly without', async () => {
      const locks = newLocks()
      await expect(new fixtures.OwnLocks(locks).key()).resolves.toBe('own')
      await expect(fixtures.OwnLocks.still()).rejects.toThrow(DriverMissingError)
      useLocks(fixtures.OwnLocks, locks)
      await expect(fixtures.OwnLocks.still()).resolves.toBe('static')
      const untold = new fixtures.Reports()
      await expect(untold.fail()).rejects.toThrow('useLocks(instance, locks)')
      useLocks(fixtures.Reports.prototype, locks)
      await expect(untold.fail()).rejects.toThrow(RangeError)
      expect(() => useLocks(untold, {} as never)).toThrow(InvalidOptionError)
    })

    it('keeps name, length and properties of the method', () => {
      const { byId } = fixtures.Reports.prototype
      expect([byId.name, byId.length]).toEqual(['byId', 2])
    })

    it('goes with @Scheduled, above and below', async () => {
      const both = new fixtures.Both()
      const locks = newLocks()
      useLocks(both, locks)
      const granted: string[] = []
      const stop = onEvent('leasehold:acquire', ({ key, namespace }) => {
        if (namespace === locks.namespace) granted.push(key)
      })
      onTestFinished(stop)
      for (const { handler } of scheduledMethods(both)) await handler({} as never)
      expect(fixtures.calls).toEqual([
        { method: 'both', on: both, args: ['both'] },
        { method: 'both', on: both, args: ['both'] },
      ])
      expect(granted).toEqual(['both', 'both'])
    })
  })
})
