import type { TaskOptions, TaskRun } from 'leasehold'
import { expect, it } from 'vitest'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { Fleet, type FleetNode } from './fleet.ts'
import type { TestLink } from './test-link.ts'

/** Lost, refused, hanging, slow, late and repeated calls among good ones. */
function spoil(fleet: Fleet, link: TestLink, random: () => number): void {
  const minute = (): number => random() * 70_000
  const slowly = (ms: number) => async (pass: () => Promise<unknown>) => {
    const answer = await pass()
    await fleet.time.sleep(ms)
    return answer
  }
  const late = (ms: number) => async (pass: () => Promise<unknown>) => {
    await fleet.time.sleep(ms)
    return pass()
  }
  const twice = (ms: number) => (pass: () => Promise<unknown>) => {
    void fleet.time
      .sleep(ms)
      .then(pass)
      .catch(() => {})
    return pass()
  }
  for (const verb of ['claim', 'inspect', 'complete', 'register'] as const) {
    for (let nth = 0; nth < 400; nth++) {
      const chance = random()
      if (chance < 0.05) link.plan(verb, 'lose-answer')
      else if (chance < 0.08) link.plan(verb, 'refuse')
      else if (chance < 0.1) link.plan(verb, 'hang')
      else if (chance < 0.14) link.plan(verb, slowly(random() * 3_000))
      else if (chance < 0.18) link.plan(verb, late(minute()))
      else if (chance < 0.21) link.plan(verb, twice(minute()))
      else link.plan(verb, (pass) => pass())
    }
  }
}

it.each([0, 2, 4, 9, 13, 139])(
  'overlapping runs of a fleet where everything fails: no slot twice, none without a reason, calm in the end (seed %i)',
  async (seed) => {
    const { next: random } = seededRandom(seed + 1_000)
    const pick = (below: number): number => Math.floor(random() * below)
    const fleet = new Fleet()
    const everyS = [1, 3, 10][pick(3)] ?? 1
    const onCrash = random() < 0.5 ? 'skip' : 'retry'
    const options: TaskOptions = {
      every: `${everyS}s`,
      overlap: 'allow',
      maxOverlap: 2 + pick(4),
      ttl: '6s',
      onCrash,
    }
    const work = async ({ signal }: TaskRun): Promise<void> => {
      const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      await Promise.race([fleet.time.sleep(random() * everyS * 2_500), aborted])
    }
    const begin = (): FleetNode => {
      const node = fleet.node({ requestTimeout: 2_000, wallOffsetMs: pick(100_000) })
      node.runs('task', options, work)
      spoil(fleet, node.link, random)
      void node.tasks.start()
      return node
    }
    const nodes = [begin(), begin(), begin()]
    const ignored = (): void => {}
    const take = (): FleetNode => nodes.splice(pick(nodes.length), 1, begin())[0]!
    for (let turn = 0; turn < 30; turn++) {
      await fleet.advance(10_000 + pick(3_000))
      const { tasks, link } = nodes[pick(nodes.length)]!
      const events = [
        () => take().kill(),
        () => take().kill(),
        () => void take().tasks.stop({ drain: '2s' }),
        () => void tasks.trigger('task').catch(ignored),
        () => void tasks.pause('task').catch(ignored),
        () => void tasks.resume('task').catch(ignored),
        () => void tasks.cancel('task').catch(ignored),
        () => {
          link.isCut = true
          void fleet.time.sleep(random() * 20_000).then(() => (link.isCut = false))
        },
      ]
      events[pick(2 * events.length)]?.()
    }
    const last = fleet.node()
    last.runs('task', options)
    await fleet.time.until(last.tasks.resume('task'))
    await fleet.start(last)
    const calmAt = fleet.now
    await fleet.advance(100_000)

    const entries = await fleet.entries('task')
    const runs = fleet.notes.map(({ slot, attempt }) => `${fleet.seconds(slot)}/${attempt}`)
    expect(new Set(runs).size, 'an attempt was made twice').toBe(runs.length)
    if (onCrash === 'skip') expect(runs.filter((run) => !run.endsWith('/1'))).toEqual([])
    const told = new Set(entries.map(({ slot }) => fleet.seconds(slot)))
    const expected: number[] = []
    const first = Math.ceil(Math.min(...told) / everyS) * everyS
    for (let slot = first; slot < fleet.seconds(fleet.now) - 15; slot += everyS) expected.push(slot)
    expect(
      expected.filter((slot) => !told.has(slot)),
      'slots without a reason',
    ).toEqual([])
    expect(entries.filter(({ reason }) => reason?.startsWith('lane') === true)).toEqual([])
    const old = ({ state, startedAt }: (typeof entries)[number]): boolean =>
      state === 'running' && Number(startedAt) < fleet.now - 60_000
    expect(entries.filter(old)).toEqual([])
    expect(entries.some(({ slot, attempt }) => attempt > 0 && Number(slot) > calmAt + 20_000)).toBe(true)
    for (const { link } of [...nodes, last]) expect(link.calls.length).toBeLessThan(4_500)
  },
)
