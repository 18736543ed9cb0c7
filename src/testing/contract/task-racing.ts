import type { ContractBehaviour } from '../contract-subject.ts'
import assert from 'node:assert/strict'
import type { ClaimRequest } from '../../driver/index.ts'
import { seededRandom } from '../seeded-random.ts'
import type { Actor } from './actor.ts'
import { group, someKeys } from './stage.ts'
import { claimOf, registrationOf, type Run } from './task-actor.ts'

export const taskRacing: readonly ContractBehaviour[] = group('tasks: racing', (it) => {
  it('an unknown task that everybody registers at once is created once', async ({ first, second }) => {
    for (let round = 0; round < 10; round++) {
      const task = `task-${round}`
      const answers = await Promise.all(
        [first, second, first, second].map((node) => node.scheduled.register(task, { starting: false })),
      )
      assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), [
        'created',
        'current',
        'current',
        'current',
      ])
      assert.equal((await first.scheduled.log(task)).length, 1)
    }
  })

  it('a new schedule that several nodes bring at once is raised once', async ({ first, second }) => {
    await first.scheduled.register('task')
    for (let round = 1; round <= 5; round++) {
      const answers = await Promise.all(
        [first, second, first, second].map((node) =>
          node.scheduled.register('task', { fingerprint: `f${round}` }),
        ),
      )
      assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), [
        'current',
        'current',
        'current',
        'raised',
      ])
      assert.equal((await first.scheduled.inspect('task')).generation, round + 1)
      assert.equal((await first.scheduled.poll()).version, round)
    }
  })

  it('of all who want one slot at once, one gets it', async ({ first, second }) => {
    await first.scheduled.register('task')
    for (let round = 0; round < 15; round++) {
      const [mark, slot] = await first.scheduled.slots('task', 1)
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          (index % 2 ? first : second).scheduled.claim('task', { slot, after: mark, overlap: 'queue' }),
        ),
      )
      const granted = answers.filter(({ outcome }) => outcome === 'granted')
      assert.equal(granted.length, 1, JSON.stringify(answers))
      assert.equal(answers.filter(({ outcome }) => outcome === 'decided').length, 7)
      const { fence } = granted[0] as { readonly fence: number }
      assert.equal(await second.scheduled.complete({ task: 'task', slot, attempt: 1, fence }), 'completed')
    }
  })

  it('two nodes that claim the slots of many tasks at once get each slot exactly once', async ({
    first,
    second,
  }) => {
    const tasks = someKeys(40, 'task')
    await first.scheduled.registerAll(tasks.slice(0, 20).map((task) => registrationOf(task)))
    await first.scheduled.registerAll(tasks.slice(20).map((task) => registrationOf(task)))
    const marks = new Map(
      (await first.scheduled.inspectAll(null)).map((record) => [record?.task, record?.mark as number]),
    )
    const slot = Math.max(...marks.values()) + 1
    await first.scheduled.waitFor(slot)
    const claims = (): ClaimRequest[] =>
      tasks.map((task) => claimOf(task, { slot, after: marks.get(task) as number }))
    const inTens = (node: Actor, requests: readonly ClaimRequest[]) =>
      [0, 10, 20, 30].map((start) => node.scheduled.claimAll(requests.slice(start, start + 10)))
    const answers = await Promise.all([...inTens(first, claims()), ...inTens(second, claims().toReversed())])
    const grants = answers.flat().filter(({ outcome }) => outcome === 'granted')
    assert.equal(grants.length, tasks.length)
    assert.equal(answers.flat().filter(({ outcome }) => outcome === 'decided').length, tasks.length)
  })

  it('of all who want to take over one lapsed run at once, one does', async ({ first, second, briefMs }) => {
    const tasks = someKeys(8, 'task')
    for (const task of tasks) {
      await first.scheduled.register(task)
      await first.scheduled.run(task, { ttlMs: briefMs })
    }
    for (const task of tasks) await first.scheduled.waitForLapse(task)
    for (const task of tasks) {
      const { mark } = await first.scheduled.inspect(task)
      const wish = { slot: mark, after: mark, onCrash: 'retry', maxAttempts: 9 } as const
      const answers = await Promise.all(
        [first, second, first, second].map((node) => node.scheduled.claim(task, wish)),
      )
      assert.deepEqual(answers.map(({ outcome }) => outcome).toSorted(), [
        'decided',
        'decided',
        'decided',
        'takeover',
      ])
    }
  })

  it('a completion and a takeover at once: the attempt is done or taken over, never both (M19)', async (stage) => {
    const { first, second, briefMs } = stage
    const tasks = someKeys(12, 'task')
    const runs: Run[] = []
    for (const task of tasks) {
      await first.scheduled.register(task)
      runs.push(await first.scheduled.run(task, { ttlMs: briefMs }))
    }
    for (const task of tasks) await first.scheduled.waitForLapse(task)
    for (const run of runs) {
      const wish = { slot: run.slot, after: run.slot, onCrash: 'retry', maxAttempts: 9 } as const
      const [completed, claimed] = await Promise.all([
        first.scheduled.complete(run),
        second.scheduled.claim(run.task, wish),
      ])
      const row = await first.scheduled.row(run.task, run.slot, 1)
      if (completed === 'completed') {
        assert.equal(claimed.outcome, 'decided')
        assert.equal(row.state, 'succeeded')
      } else {
        assert.equal(claimed.outcome, 'takeover')
        assert.deepEqual([row.state, row.late], ['lost', 'succeeded'])
      }
    }
  })

  it('a fleet of four runs every slot once, in order, whoever gets it', async ({ first, second, enter }) => {
    await first.scheduled.register('task')
    const nodes = [first, second, enter('first'), enter('second')]
    const random = seededRandom(11)
    const [mark, ...slots] = await first.scheduled.slots('task', 40)
    const ran: number[] = []
    let running = 0
    const work = async (node: Actor): Promise<void> => {
      let after = mark
      while (after < (slots.at(-1) as number)) {
        const answer = await node.scheduled.claim('task', { slot: after + 1, after, overlap: 'queue' })
        assert.ok('mark' in answer)
        if (answer.outcome !== 'granted') {
          assert.ok(['decided', 'behind', 'held'].includes(answer.outcome), answer.outcome)
          after = answer.mark
          continue
        }
        running++
        assert.equal(running, 1, 'one at a time')
        ran.push(answer.slot)
        if (random.integer(2) === 0) await node.scheduled.poll()
        running--
        const { slot, attempt, fence } = answer
        assert.equal(await node.scheduled.complete({ task: 'task', slot, attempt, fence }), 'completed')
        after = answer.mark
      }
    }
    await Promise.all(nodes.map(work))
    assert.deepEqual(ran, slots)
    const rows = await first.scheduled.log('task', { from: slots[0] })
    assert.deepEqual(new Set(rows.map((row) => row.state)), new Set(['succeeded']))
  })
})
