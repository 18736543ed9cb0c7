import {
  ClosedError,
  InvalidOptionError,
  LockService,
  ScheduledTaskStore,
  StoreUnavailableError,
} from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet, type FleetNode } from './fleet.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const second = (seconds: number): Date => new Date(start + seconds * 1_000)

/** A process whose own timers fire what the store decides. */
function firing(node: FleetNode): ScheduledTaskStore {
  return new ScheduledTaskStore({ locks: node.locks })
}

describe('what something else fires', () => {
  it('runs once a slot, although one process is 300 ms late and the work takes 5 ms', async () => {
    const fleet = new Fleet()
    const stores = [fleet.node(), fleet.node(), fleet.node()].map(firing)
    const ran: string[] = []
    const outcomes: string[] = []
    for (let slot = 1; slot <= 5; slot++) {
      await fleet.advanceTo(second(slot).toISOString())
      const fire = (store: ScheduledTaskStore, index: number) =>
        store
          .run('tick', () => void ran.push(`${index} ${slot}`), { slot: second(slot) })
          .then((outcome) => void outcomes.push(outcome))
      const prompt = stores.slice(0, 2).map(fire)
      await fleet.advance(300)
      await Promise.all([...prompt, ...stores.slice(2).map((store) => fire(store, 2))])
    }
    expect(ran).toEqual(['0 1', '0 2', '0 3', '0 4', '0 5'])
    expect(outcomes.filter((outcome) => outcome === 'ran')).toHaveLength(5)
    expect(outcomes.filter((outcome) => outcome === 'skipped')).toHaveLength(10)
    expect(await fleet.history('tick')).toEqual([1, 2, 3, 4, 5].map((slot) => `${slot}/1 succeeded`))
  })

  it('runs the very first slot that is fired, although nobody knew the task', async () => {
    const fleet = new Fleet()
    const [one, two] = [firing(fleet.node()), firing(fleet.node())]
    await fleet.advanceTo('2026-01-01T00:01:00.200Z')
    const outcomes = [one, two].map((store) => store.run('minutely', () => {}, { cron: '* * * * *' }))
    await fleet.advance(10)
    expect((await Promise.all(outcomes)).toSorted()).toEqual(['ran', 'skipped'])
    expect(await fleet.history('minutely')).toEqual(['60/1 succeeded'])
  })

  it('derives the slot from the cron or the interval and the clock of its host', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const store = firing(node)
    const slots: (Date | null)[] = []
    const note = ({ slot }: { slot: Date | null }): void => void slots.push(slot)
    await fleet.advanceTo('2026-01-01T12:34:00.004Z')
    await fleet.time.until(store.run('cron', note, { cron: '* * * * *' }))
    // A timer that rings a fraction too early is meant for the slot that is about to come.
    await fleet.advanceTo('2026-01-01T12:34:59.999Z')
    await fleet.time.until(store.run('cron', note, { cron: '* * * * *' }))
    await fleet.time.until(store.run('every', note, { every: '20s' }))
    await fleet.time.until(store.run('Paris', note, { cron: '0 13 * * *', timeZone: 'Europe/Paris' }))
    expect(slots.map((slot) => slot?.toISOString())).toEqual([
      '2026-01-01T12:34:00.000Z',
      '2026-01-01T12:35:00.000Z',
      '2026-01-01T12:35:00.000Z',
      '2026-01-01T12:00:00.000Z',
    ])
  })

  it('waits for a slot that its fast clock rang too early, and decides nothing before', async () => {
    const fleet = new Fleet()
    const fast = firing(fleet.node({ wallOffsetMs: 3_600_000 }))
    const right = firing(fleet.node())
    const ran: string[] = []
    await fleet.advanceTo('2026-01-01T00:00:00.100Z')
    const early = fast.run('hourly', ({ slot }) => void ran.push(`fast ${slot?.toISOString()}`), {
      cron: '0 * * * *',
    })
    await fleet.advanceTo('2026-01-01T00:59:59.900Z')
    expect(ran).toEqual([])
    await fleet.advanceTo('2026-01-01T01:00:30Z')
    expect(await early).toBe('ran')
    expect(ran).toEqual(['fast 2026-01-01T01:00:00.000Z'])
    const late = right.run('hourly', () => void ran.push('right'), { cron: '0 * * * *' })
    expect(await fleet.time.until(late)).toBe('skipped')
  })

  it('is skipped while an earlier slot still runs, and recorded so', async () => {
    const fleet = new Fleet()
    const [one, two] = [firing(fleet.node()), firing(fleet.node())]
    await fleet.advanceTo(second(1).getTime())
    const long = one.run('slow', () => fleet.time.sleep(2_500), { slot: second(1) })
    await fleet.advanceTo(second(2).getTime())
    expect(await fleet.time.until(two.run('slow', () => {}, { slot: second(2) }))).toBe('skipped')
    await fleet.advance(5_000)
    expect(await long).toBe('ran')
    expect(await fleet.history('slow')).toEqual(['1/1 succeeded', '2/0 skipped overlap'])
  })

  it('keeps its lease alive beyond the ttl, and frees the task one ttl after its process died', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const [one, two] = [firing(node), firing(fleet.node())]
    await fleet.advanceTo(second(1).getTime())
    const options = { ttl: '2s' } as const
    void one.run('long', () => new Promise(() => {}), { slot: second(1), ...options })
    await fleet.advanceTo(second(20).getTime())
    expect(await fleet.time.until(two.run('long', () => {}, { slot: second(20), ...options }))).toBe(
      'skipped',
    )
    node.kill()
    await fleet.advanceTo(second(23).getTime())
    expect(await fleet.time.until(two.run('long', () => {}, { slot: second(23), ...options }))).toBe('ran')
    expect(await fleet.history('long')).toEqual(['1/1 lost', '20/0 skipped overlap', '23/1 succeeded'])
  })

  it('rejects with what the function throws, and the run has failed', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    await fleet.advanceTo(second(1).getTime())
    const thrown = new RangeError('no such book')
    const run = store.run('books', () => Promise.reject(thrown), { slot: second(1) })
    await expect(fleet.time.until(run)).rejects.toBe(thrown)
    const [entry] = await fleet.entries('books')
    expect(entry).toMatchObject({ state: 'failed', error: expect.stringContaining('no such book') as string })
  })

  it('is neither run nor reported as skipped while the store is away, and runs when it is back in time', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ requestTimeout: 200 })
    const store = firing(node)
    await fleet.advanceTo(second(1).getTime())
    node.link.isCut = true
    const hopeless = store.run('a', () => {}, { slot: second(1), startDeadline: '2s' })
    const patient = store.run('b', () => {}, { slot: second(1) })
    await expect(fleet.time.until(hopeless, 10_000)).rejects.toThrow(StoreUnavailableError)
    node.link.isCut = false
    expect(await fleet.time.until(patient, 10_000)).toBe('ran')
  })

  it('is not run under a schedule that the fleet has replaced', async () => {
    const fleet = new Fleet()
    const [old, edited] = [firing(fleet.node()), firing(fleet.node())]
    await fleet.advanceTo(second(60).getTime())
    expect(await fleet.time.until(old.run('job', () => {}, { cron: '* * * * *' }))).toBe('ran')
    await fleet.advanceTo(second(120).getTime())
    expect(await fleet.time.until(edited.run('job', () => {}, { cron: '*/2 * * * *' }))).toBe('ran')
    expect(await fleet.time.until(old.run('job', () => {}, { cron: '* * * * *' }))).toBe('skipped')
    await fleet.advanceTo(second(180).getTime())
    expect(await fleet.time.until(old.run('job', () => {}, { cron: '* * * * *' }))).toBe('skipped')
    expect(await fleet.history('job')).toEqual([
      '60/1 succeeded',
      '119.999/0 missed edited',
      '120/1 succeeded',
    ])
  })
})

describe('a name without slots', () => {
  it('is locked while the function runs, and free afterwards', async () => {
    const fleet = new Fleet()
    const [one, two] = [firing(fleet.node()), firing(fleet.node())]
    const first = one.run('report', ({ slot }) => fleet.time.sleep(slot === null ? 500 : 0))
    await fleet.advance(100)
    expect(await fleet.time.until(two.run('report', () => {}))).toBe('skipped')
    await fleet.advance(1_000)
    expect(await first).toBe('ran')
    expect(await fleet.time.until(two.run('report', () => {}))).toBe('ran')
  })
})

describe('a guarded function', () => {
  it('takes the arguments that it is called with', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    const seen: unknown[] = []
    const guarded = store.guard('greet', (who: string, times: number) => void seen.push([who, times]), {
      every: '1s',
    })
    await fleet.advanceTo(second(1).getTime())
    expect(await fleet.time.until(guarded('Ada', 2))).toBe('ran')
    expect(await fleet.time.until(guarded('Bob', 3))).toBe('skipped')
    expect(seen).toEqual([['Ada', 2]])
  })
})

describe('an announced task', () => {
  it('is known before it is fired, and its unfired slots are accounted for', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    await fleet.time.until(store.announce('tick', { every: '1s' }))
    await fleet.advanceTo(second(4).getTime())
    expect(await fleet.time.until(store.run('tick', () => {}, { every: '1s' }))).toBe('ran')
    expect(await fleet.history('tick')).toEqual([
      '1/0 missed down',
      '2/0 missed down',
      '3/0 missed down',
      '4/1 succeeded',
    ])
  })

  it('is attended, so that it stays known for an hour without a fire', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const store = firing(node)
    await fleet.time.until(store.announce('rare', { cron: '0 0 1 6 *' }))
    await fleet.advance(3_600_000)
    expect(node.link.count('register')).toBeGreaterThan(55)
    expect(node.link.count('register')).toBeLessThan(80)
    expect(node.link.count('claim')).toBe(0)
  })
})

describe('stopping', () => {
  it('lets what runs end under a live lease, and runs nothing more', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    await fleet.advanceTo(second(1).getTime())
    let held: boolean | undefined
    const run = store.run(
      'job',
      async (view) => {
        await fleet.time.sleep(5_000)
        held = view.isHeld()
      },
      { slot: second(1), ttl: '1s' },
    )
    await fleet.advance(100)
    const stopped = store.stop()
    await expect(store.run('job', () => {}, { slot: second(2) })).rejects.toThrow(ClosedError)
    await fleet.advance(6_000)
    await stopped
    expect(await run).toBe('ran')
    expect(held).toBe(true)
  })

  it('aborts what still runs at the drain limit', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    await fleet.advanceTo(second(1).getTime())
    const run = store.run(
      'job',
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
      { slot: second(1) },
    )
    run.catch(() => {})
    await fleet.advance(100)
    const stopped = store.stop({ drain: '2s' })
    await fleet.advance(5_000)
    await stopped
    await expect(run).rejects.toThrow(/drain limit/)
    expect(await fleet.history('job')).toEqual(['1/1 abandoned stopped'])
  })

  it('ends the wait for a slot that is to come', async () => {
    const fleet = new Fleet()
    const store = firing(fleet.node())
    await fleet.time.until(store.announce('job', { every: '1h' }))
    const run = store.run('job', () => {}, { slot: second(3_600), every: '1h' })
    run.catch(() => {})
    await fleet.advance(1_000)
    await fleet.time.until(store.stop())
    await expect(run).rejects.toThrow(ClosedError)
  })
})

describe('bad input is refused before anything is sent', () => {
  const store = new ScheduledTaskStore({ locks: new LockService({}) })
  it.each([
    ['an invalid date', { slot: new Date('nonsense') }, 'slot'],
    ['a slot with fractions', { slot: 1.5 }, 'slot'],
    ['a slot more than a day ahead', { slot: new Date(Date.now() + 2 * 86_400_000) }, 'slot'],
    ['a cron and an interval', { cron: '* * * * *', every: '1m' }, 'every'],
    ['an impossible cron', { cron: '0 0 31 2 *' }, 'cron'],
    ['a zone without a cron', { timeZone: 'Europe/Paris' }, 'timeZone'],
    ['an unknown option', { crons: '* * * * *' }, 'crons'],
    ['a ttl that is none', { every: '1m', ttl: 'soon' }, 'ttl'],
  ])('%s', async (_, options, option) => {
    const run = store.run('x', () => {}, options as object)
    await expect(run).rejects.toThrow(InvalidOptionError)
    await expect(run).rejects.toMatchObject({ option })
  })

  it('an announcement without a schedule', async () => {
    await expect(store.announce('x', {})).rejects.toThrow(InvalidOptionError)
  })
})

it('a store that has lost the task knows it again, and a slot that is still to come runs', async () => {
  const fleet = new Fleet()
  const node = fleet.node()
  const store = firing(node)
  const ran: string[] = []
  const work = (): void => void ran.push('ran')
  await fleet.advance(1_000)
  await fleet.time.until(store.run('tick', work, { every: '1s', slot: second(1) }))
  node.link.plan('claim', async () => {
    const mark = second(1).getTime()
    const record = { now: fleet.now, mark, generation: 1, paused: false, orders: '', running: null }
    return [{ outcome: 'unregistered', ...record }]
  })
  await fleet.advance(990)
  const fired = store.run('tick', work, { every: '1s', slot: second(2) })
  await fleet.advance(100)
  expect(await fired).toBe('ran')
  expect(ran).toHaveLength(2)
})

describe('a store that is stopped while a claim is in the air', () => {
  it('begins nothing when the grant comes after its drain limit: the slot is skipped, stopped', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const store = firing(node)
    const ran: unknown[] = []
    await fleet.time.until(store.announce('tick', { every: '1s' }))
    await fleet.advance(1_000)
    node.link.plan('claim', async (pass) => {
      const answer = await pass()
      await fleet.time.sleep(3_000)
      return answer
    })
    const fired = store.run('tick', () => void ran.push('tick'), { every: '1s', slot: second(1) })
    const outcome = expect(fired).rejects.toThrow(ClosedError)
    await fleet.advance(10)
    await fleet.time.until(store.stop({ drain: 0 }))
    await fleet.advance(4_000)
    await outcome
    expect(ran).toEqual([])
    expect(await fleet.history('tick')).toEqual(['1/1 skipped stopped'])
  })
})
