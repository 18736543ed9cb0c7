import type { TaskOptions, TaskRun } from 'leasehold'
import { describe, expect, it } from 'vitest'
import { Fleet, type FleetNode } from './fleet.ts'

const allow = { every: '10s', overlap: 'allow', ttl: '6s' } as const

async function nodesOf(
  fleet: Fleet,
  count: number,
  options: TaskOptions,
  work?: (run: TaskRun, node: FleetNode) => unknown,
): Promise<FleetNode[]> {
  const nodes = Array.from({ length: count }, () => fleet.node())
  for (const node of nodes) node.runs('task', options, work)
  await fleet.start(...nodes)
  return nodes
}

/** The handler of a run that ends when it is asked to. */
const untilAborted = ({ signal }: TaskRun): Promise<void> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

describe('a manual run of a task whose runs overlap', () => {
  it('holds back slots without a storm of calls, and the newest of them runs when it has ended', async () => {
    const fleet = new Fleet()
    const nodes = await nodesOf(fleet, 2, allow, ({ isManual }) =>
      isManual ? fleet.time.sleep(595_000) : undefined,
    )
    await fleet.advance(15_000)
    await fleet.time.until(nodes[0]!.tasks.trigger('task'))
    await fleet.advance(1_000)
    const before = nodes.map(({ link }) => link.calls.length)
    await fleet.advance(580_000)
    for (const [index, { link }] of nodes.entries()) {
      // A look and a wake for each of 58 slots, heartbeats, registrations, polls: not many for each second.
      expect(link.calls.length - before[index]!).toBeLessThan(1_200)
      expect(link.count('claim')).toBeLessThan(80)
    }
    await fleet.advance(45_000)
    expect(fleet.slotsRun.slice(0, 2)).toEqual([10, 15])
    expect(fleet.slotsRun.slice(2)).toEqual([610, 620, 630, 640])
  })

  it('that ends between the look and the claim of a slot does not cost the slot', async () => {
    const fleet = new Fleet()
    const nodes = await nodesOf(fleet, 2, allow, ({ isManual }) =>
      isManual ? fleet.time.sleep(6_500) : undefined,
    )
    await fleet.advance(14_000)
    await fleet.time.until(nodes[0]!.tasks.trigger('task'))
    await fleet.advance(1_000)
    for (const { link } of nodes) {
      link.plan(
        'inspect',
        async (pass) => {
          const seen = await pass()
          await fleet.time.sleep(1_500)
          return seen
        },
        3,
      )
    }
    await fleet.advance(60_000)
    const history = await fleet.history('task')
    expect(history.filter((line) => line.includes('lane'))).toEqual([])
    expect(history).toContain('20/1 succeeded')
  })

  it("is lost with its node, with onCrash: 'skip'", async () => {
    const fleet = new Fleet()
    const nodes = await nodesOf(fleet, 2, allow, ({ isManual }) =>
      isManual ? fleet.time.sleep(600_000) : undefined,
    )
    await fleet.advance(12_000)
    await fleet.time.until(nodes[0]!.tasks.trigger('task'))
    await fleet.advance(1_000)
    const [, manual] = fleet.notes
    nodes.find(({ name }) => name === manual?.node)?.kill()
    await fleet.advance(30_000)
    const history = await fleet.history('task')
    expect(history.filter((line) => line.startsWith('12/'))).toEqual(['12/1 lost manual'])
    expect(history).toContain('40/1 succeeded')
  })

  it("is run again after its node died, with onCrash: 'retry', by the task's own maxAttempts", async () => {
    const fleet = new Fleet()
    const kill = (slot: number): void => {
      const last = fleet.notes.findLast((note) => fleet.seconds(note.slot) === slot)
      nodes.find(({ name }) => name === last?.node)?.kill()
    }
    const nodes = await nodesOf(fleet, 3, { ...allow, onCrash: 'retry', maxAttempts: 2 }, (run) =>
      fleet.seconds(run.slot) === 12 ? fleet.time.sleep(600_000) : undefined,
    )
    await fleet.advance(12_000)
    await fleet.time.until(nodes[0]!.tasks.trigger('task'))
    await fleet.advance(1_000)
    expect(fleet.ran.some((line) => line.endsWith(' 12/1'))).toBe(true)
    kill(12)
    await fleet.advance(20_000)
    expect(fleet.ran.some((line) => line.endsWith(' 12/2'))).toBe(true)
    kill(12)
    await fleet.advance(30_000)
    const history = await fleet.history('task')
    expect(history.filter((line) => line.startsWith('12/'))).toEqual(['12/1 lost manual', '12/2 lost'])
    expect(history).toContain('60/1 succeeded')
  })

  it('holds its lock, and is cut off by its timeout', async () => {
    const fleet = new Fleet()
    const options = { ...allow, every: '300d', lock: 'shared', timeout: '2s' } as const
    const node = (await nodesOf(fleet, 1, options, untilAborted))[0]!
    const held = await fleet.time.until(node.locks.acquire('shared', { wait: 0 }))
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(1_000)
    expect(fleet.notes).toEqual([])
    await held?.release()
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(5_000)
    expect((await fleet.history('task')).map((line) => line.replace(/^\S+ /, ''))).toEqual([
      'skipped lock',
      'abandoned timeout',
    ])
  })

  it('whose answer was lost runs, also if a slot came due before it was asked again', async () => {
    const fleet = new Fleet()
    const node = (await nodesOf(fleet, 1, { ...allow, ttl: '30s' }))[0]!
    await fleet.advance(19_500)
    node.link.plan('claim', async (pass) => {
      await pass()
      await fleet.time.sleep(2_000)
      throw new Error('lost')
    })
    await fleet.time.until(node.tasks.trigger('task'))
    await fleet.advance(20_000)
    const history = await fleet.history('task')
    expect(history).toContain('19.5/1 succeeded manual')
    expect(history).toContain('20/1 succeeded')
  })
})

describe('a hand-over', () => {
  it('whose node died is taken up again, also by a claim that decides a later slot as missed', async () => {
    const fleet = new Fleet()
    const options = { ...allow, every: '1m', catchUp: 'none', startDeadline: '1s' } as const
    const first = (await nodesOf(fleet, 1, options))[0]!
    first.link.plan('claim', (pass) => pass())
    first.link.plan('claim', () => {
      first.kill()
      return new Promise(() => {})
    })
    await fleet.advance(150_000)
    const second = fleet.node()
    second.runs('task', options)
    await fleet.start(second)
    await fleet.advance(20_000)
    const history = await fleet.history('task')
    expect(history).toContain('60/1 succeeded')
    expect(history).toContain('120/0 missed late')
  })

  it('is taken up again in its lane under any name', async () => {
    const fleet = new Fleet()
    const name = '\u0001'.repeat(300)
    const nodes = [fleet.node(), fleet.node()]
    for (const node of nodes) {
      node.runs(name, allow)
      for (let nth = 0; nth < 60; nth++)
        node.link.plan('claim', nth % 2 === 0 ? 'lose-answer' : (pass) => pass())
    }
    await fleet.start(...nodes)
    await fleet.advance(105_000)
    const history = await fleet.history(name)
    expect(history.filter((line) => line.includes('lane'))).toEqual([])
    expect(new Set(fleet.slotsRun).size).toBe(fleet.slotsRun.length)
  })

  it('that a claim of an earlier slot takes over, half a minute late, goes to the lane that it was begun for', async () => {
    const fleet = new Fleet()
    const [slow, dying] = (await nodesOf(fleet, 2, allow)) as [FleetNode, FleetNode]
    slow.link.plan('claim', async (pass) => {
      await fleet.time.sleep(28_000)
      return pass()
    })
    // Both claims of slot 10, and the one of slot 20 that is to be handed over.
    for (let nth = 0; nth < 3; nth++) dying.link.plan('claim', (pass) => pass())
    dying.link.plan('claim', () => {
      dying.kill()
      return new Promise(() => {})
    })
    await fleet.advance(13_000)
    slow.link.isCut = true
    await fleet.advance(25_500)
    slow.link.isCut = false
    await fleet.advance(25_000)
    // When the store was reached again slot 40 had come due.
    expect(fleet.slotsRun).toEqual([10, 20, 40, 50, 60])
    expect(await fleet.history('task')).toContain('20/1 succeeded')
  })

  it('is made to lanes that the store knows: one whose record is missing costs no slot', async () => {
    const fleet = new Fleet()
    const nodes = await nodesOf(fleet, 2, { ...allow, maxOverlap: 2 })
    for (const { link } of nodes) {
      link.plan(
        'inspect',
        async (pass) =>
          (await (pass() as Promise<unknown[]>)).map((record, nth, all) =>
            nth === all.length - 1 ? record : null,
          ),
        2,
      )
    }
    const told = nodes.map(({ link }) => link.count('register'))
    await fleet.advance(11_000)
    // Such a lane is made known before anything is claimed there.
    expect(nodes.every(({ link }, nth) => link.count('register') > told[nth]!)).toBe(true)
    await fleet.advance(24_000)
    expect(await fleet.history('task')).toEqual(['10/1 succeeded', '20/1 succeeded', '30/1 succeeded'])
  })

  it('by a claim that comes a minute late runs nothing twice, and leaves no slot without a reason', async () => {
    for (let nth = 0; nth < 8; nth++) {
      const fleet = new Fleet()
      const nodes = await nodesOf(fleet, 2, { ...allow, maxOverlap: 3 }, () => fleet.time.sleep(12_000))
      for (const { link } of nodes) {
        for (let skipped = 0; skipped < nth; skipped++) link.plan('claim', (pass) => pass())
        link.plan('claim', async (pass) => {
          void fleet.time
            .sleep(60_000)
            .then(pass)
            .catch(() => {})
          await fleet.time.sleep(60_001)
          return pass()
        })
      }
      await fleet.advance(205_000)
      expect(new Set(fleet.ran.map((line) => line.split(' ')[1])).size, `${nth}`).toBe(fleet.ran.length)
      const entries = await fleet.entries('task')
      const decided = new Set(entries.map(({ slot }) => fleet.seconds(slot)))
      for (let slot = 10; slot <= 200; slot += 10) expect(decided, `${nth}`).toContain(slot)
      expect(fleet.slotsRun.length, `${nth}`).toBeGreaterThan(14)
      await fleet.end()
    }
  })
})

it('history() of a task whose runs overlap gives no more than its limit, newest first', async () => {
  const fleet = new Fleet()
  const options = { ...allow, every: '1m', onCrash: 'retry' } as const
  const node = (await nodesOf(fleet, 1, options, () => fleet.time.sleep(600_000)))[0]!
  await fleet.advance(61_000)
  node.kill()
  await fleet.advance(10_000)
  const other = (await nodesOf(fleet, 1, options, () => fleet.time.sleep(600_000)))[0]!
  await fleet.advance(60_000)
  const entries = await fleet.time.until(other.tasks.history('task', { limit: 2 }))
  const told = entries.map(({ slot, attempt, state }) => `${fleet.seconds(slot)}/${attempt} ${state}`)
  expect(told).toEqual(['120/1 running', '60/2 running'])
})

it('runs in lanes that the task has no more are told of', async () => {
  const fleet = new Fleet()
  const node = (await nodesOf(fleet, 1, { ...allow, maxOverlap: 4 }, () => fleet.time.sleep(35_000)))[0]!
  await fleet.advance(41_000)
  await fleet.time.until(node.tasks.stop({ drain: '1m' }), 120_000)
  await nodesOf(fleet, 1, { ...allow, maxOverlap: 2 })
  await fleet.advance(1_000)
  const history = await fleet.history('task')
  expect(history.slice(0, 4)).toEqual([10, 20, 30, 40].map((slot) => `${slot}/1 succeeded`))
})

it('a look at more lanes than the store takes at a time is made in parts', async () => {
  const fleet = new Fleet()
  const { driver } = fleet
  const node = fleet.node({ driver: { ...driver, abilities: { ...driver.abilities, maxBatch: 4 } } })
  node.runs('task', { ...allow, maxOverlap: 10 }, () => fleet.time.sleep(95_000))
  await fleet.start(node)
  await fleet.advance(91_000)
  expect(fleet.slotsRun).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90])
  const sizes = node.link.calls
    .filter(({ verb }) => verb === 'inspect')
    .map(({ requests }) => requests.length)
  expect(Math.max(...sizes)).toBe(4)
})
