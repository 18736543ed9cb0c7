import {
  currentLease,
  InvalidOptionError,
  SchedulerStateError,
  ScheduledTaskStore,
  UnknownTaskError,
} from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet } from './fleet.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const at = (seconds: number): Date => new Date(start + seconds * 1_000)

describe('a task that an operator triggers from another process', () => {
  it('runs once, on a node that has it, within the time that nodes look for requests', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    const operator = fleet.node()
    const manual: boolean[] = []
    for (const node of nodes) node.runs('task', { every: '1h' }, ({ isManual }) => void manual.push(isManual))
    await fleet.start(...nodes)
    await fleet.advance(100_000)
    expect(await fleet.time.until(operator.tasks.trigger('task', { by: 'ada: ticket 7' }))).toBe('applied')
    await fleet.advance(6_000)
    expect(fleet.slotsRun).toEqual([100])
    await fleet.advance(3_600_000)
    expect(manual).toEqual([true, false])
    expect(await fleet.history('task')).toEqual(['100/1 succeeded manual', '3600/1 succeeded'])
    const entry = (await fleet.entries('task')).find(({ reason }) => reason === 'manual')
    expect(entry?.by).toBe('ada: ticket 7')
  })

  it('runs at once when it is triggered in a process that has it', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1h' })
    await fleet.start(node)
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(50)
    expect(fleet.notes).toHaveLength(1)
  })

  it('runs although it is paused, and its schedule stays paused', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '10s' })
    await fleet.start(node)
    await fleet.time.until(node.tasks.pause('task'))
    await fleet.advance(15_000)
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(10_000)
    expect(await fleet.history('task')).toEqual([
      '10/0 skipped paused',
      '15/1 succeeded manual',
      '20/0 skipped paused',
    ])
  })

  it('waits for the run under way, and several wait for each other', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    let running = 0
    let most = 0
    node.runs('task', { every: '1h' }, async () => {
      most = Math.max(most, ++running)
      await fleet.time.sleep(20_000)
      running--
    })
    await fleet.start(node)
    await fleet.advance(3_605_000)
    for (let count = 0; count < 3; count++) await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(80_000)
    expect(most).toBe(1)
    expect(fleet.notes).toHaveLength(4)
  })

  it('is triggered once by one request id, however often that is sent, and by many at once each time', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const operators = Array.from({ length: 5 }, () => fleet.node())
    node.runs('task', { every: '1h' })
    await fleet.start(node)
    const same = operators.map((one) =>
      fleet.time.until(one.tasks.trigger('task', { requestId: 'deploy 7' })),
    )
    expect((await Promise.all(same)).toSorted()).toEqual([
      'applied',
      'repeated',
      'repeated',
      'repeated',
      'repeated',
    ])
    const other = operators.map((one) => fleet.time.until(one.tasks.trigger('task')))
    expect(new Set(await Promise.all(other))).toEqual(new Set(['applied']))
    await fleet.advance(10_000)
    expect(fleet.notes).toHaveLength(6)
    const again = fleet.time.until(node.tasks.trigger('task', { requestId: 'deploy 7' }))
    expect(await again).toBe('repeated')
  })

  it('whose runner dies is retried if the task is', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    for (const node of nodes) {
      node.runs('task', { every: '1h', onCrash: 'retry', ttl: '5s' }, ({ attempt }) =>
        attempt === 1 ? new Promise(() => {}) : undefined,
      )
    }
    await fleet.start(...nodes)
    await fleet.time.until(nodes[0]!.tasks.trigger('task'))
    await fleet.advance(1_000)
    nodes.find(({ name }) => name === fleet.notes[0]?.node)?.kill()
    await fleet.advance(20_000)
    expect((await fleet.history('task')).map((line) => line.replace(/^\S+\//, ''))).toEqual([
      '1 lost manual',
      '2 succeeded',
    ])
  })

  it('is told apart by its handler although the answer was lost, and a slot has come due since', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const told: string[] = []
    node.runs('task', { every: '10s' }, ({ slot, isManual }) => {
      told.push(`${fleet.seconds(slot)} ${isManual ? 'manual' : 'due'}`)
    })
    await fleet.start(node)
    await fleet.advanceTo(start + 9_990)
    node.link.plan('claim', 'lose-answer')
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(12_000)
    expect(told.filter((line) => line.endsWith('manual'))).toEqual(['9.99 manual'])
    expect(told.at(-1)).toBe('20 due')
  })

  it('is told apart although it is a further attempt of its slot, and the answer was lost', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const told: string[] = []
    node.runs('task', { every: '10s' }, ({ slot, attempt, isManual }) => {
      told.push(`${fleet.seconds(slot)}/${attempt} ${isManual ? 'manual' : 'due'}`)
    })
    await fleet.start(node)
    await fleet.advance(11_000)
    node.link.plan('claim', 'lose-answer')
    await fleet.time.until(node.tasks.backfill('task', { from: at(10) }))
    await fleet.advance(5_000)
    expect(told).toEqual(['10/1 due', '10/2 manual'])
  })

  it('is none of the leases of the code that triggers it', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    const around: unknown[] = []
    node.runs('task', { every: '1h', lock: 'ledger', lockWait: '5s' }, () => {
      around.push(currentLease()?.key)
    })
    await fleet.start(node)
    const holding = node.locks.runExclusive('ledger', async () => {
      await node.tasks.trigger('task')
      await fleet.time.sleep(1_000)
    })
    await fleet.advance(3_000)
    await holding
    expect((await fleet.history('task')).map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'succeeded manual',
    ])
    expect(around).toEqual(['ledger'])
  })

  it('is claimed once although the loss of an earlier run is found by looking for it, before its timer rang', async () => {
    const fleet = new Fleet()
    const node = fleet.node({ timersLateMs: 300 })
    let runs = 0
    node.runs('task', { every: '1h', ttl: '5s' }, async () => {
      runs++
      await fleet.time.sleep(runs === 1 ? 20_000 : 1_000)
    })
    await fleet.start(node)
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(10)
    node.link.plan('refresh', 'hang', 20)
    await fleet.advance(5_050)
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(30_000)
    expect(runs).toBe(2)
    expect(fleet.errors.filter(({ error }) => (error as { code?: string }).code === 'FENCE_UNSAFE')).toEqual(
      [],
    )
    expect((await fleet.history('task')).map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'lost manual',
      'succeeded manual',
    ])
    const tokens = node.link.requests('claim').map(({ token }) => token)
    expect(new Set(tokens).size).toBe(tokens.length)
  })

  it('must be one that the store knows and a scheduler fires', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    await expect(fleet.time.until(node.tasks.trigger('taks'))).rejects.toThrow(UnknownTaskError)
    const store = new ScheduledTaskStore({ locks: node.locks })
    await fleet.time.until(store.announce('fired', { every: '1s' }))
    await expect(fleet.time.until(node.tasks.trigger('fired'))).rejects.toThrow(SchedulerStateError)
  })

  it('is refused when too many runs are waiting', async () => {
    const fleet = new Fleet()
    const [node, operator] = [fleet.node(), fleet.node()]
    node.runs('task', { every: '1h' })
    await fleet.start(node)
    await fleet.time.until(node.tasks.stop())
    for (let count = 0; count < 16; count++) {
      expect(await fleet.time.until(operator.tasks.trigger('task', { by: 'ada' }))).toBe('applied')
    }
    await expect(fleet.time.until(operator.tasks.trigger('task'))).rejects.toThrow(SchedulerStateError)
    await fleet.start(node)
    await fleet.advance(10_000)
    expect(fleet.notes).toHaveLength(16)
    expect(await fleet.time.until(operator.tasks.trigger('task'))).toBe('applied')
  })
})

describe('a backfill', () => {
  it('runs the decided slots of its range, missed ones and run ones, in turn, beside the schedule', async () => {
    const fleet = new Fleet()
    const nodes = [fleet.node(), fleet.node()]
    const options = { every: '10s', catchUp: 'none', startDeadline: '1s' } as const
    for (const node of nodes) node.runs('task', options)
    await fleet.start(...nodes)
    await fleet.advance(25_000)
    for (const node of nodes) await fleet.time.until(node.tasks.stop())
    await fleet.advance(30_000)
    await fleet.start(...nodes)
    await fleet.advance(10_000)
    const before = fleet.notes.length
    const outcome = nodes[0]!.tasks.backfill('task', { from: at(15), to: at(1_000), by: 'ada' })
    expect(await fleet.time.until(outcome)).toBe('applied')
    await fleet.advance(4_000)
    expect(fleet.slotsRun.slice(before)).toEqual([20, 30, 40, 50, 60])
    await fleet.advance(2_000)
    expect(fleet.slotsRun.slice(before)).toEqual([20, 30, 40, 50, 60, 70])
    const history = await fleet.history('task')
    expect(history).toContain('20/1 succeeded')
    expect(history).toContain('20/2 succeeded manual')
    expect(history).toContain('40/1 succeeded manual')
  })

  it('of a cron runs the slots of its time zone', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('daily', { cron: '0 9 * * *', timeZone: 'Asia/Tokyo' })
    await fleet.start(node)
    await fleet.advance(5 * 86_400_000)
    const before = fleet.notes.length
    await fleet.time.until(node.tasks.backfill('daily', { from: at(86_400), to: at(2.5 * 86_400) }))
    await fleet.advance(2_000)
    expect(fleet.slotsRun.slice(before)).toEqual([86_400, 2 * 86_400])
  })

  it('needs a range with decided slots, and not too many', async () => {
    const fleet = new Fleet()
    const node = fleet.node()
    node.runs('task', { every: '1s' })
    await fleet.start(node)
    await fleet.advance(20_000)
    const { tasks } = node
    await expect(fleet.time.until(tasks.backfill('task', { from: at(60) }))).rejects.toThrow(
      InvalidOptionError,
    )
    await expect(fleet.time.until(tasks.backfill('task', { from: at(-20_000) }))).rejects.toThrow(
      /at most 10000/,
    )
    const nonsense = tasks.backfill('task', { from: 'yesterday' as never })
    await expect(nonsense).rejects.toMatchObject({ option: 'from' })
  })
})
