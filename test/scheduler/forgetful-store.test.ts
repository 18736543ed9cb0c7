import { describe, expect, it } from 'vitest'
import { memoryNamespace } from '../../src/drivers/memory/table.ts'
import { Fleet, type FleetNode } from './fleet.ts'

const never = (): Promise<never> => new Promise(() => {})

/** A node that watches the run of another one, which has died. */
async function watching(fleet: Fleet): Promise<FleetNode> {
  const [runner, watcher] = [fleet.node(), fleet.node()]
  for (const node of [runner, watcher]) node.runs('task', { every: '10s', ttl: '2s' }, never)
  await fleet.start(runner)
  await fleet.advance(10_100)
  await fleet.start(watcher)
  runner.kill()
  return watcher
}

describe('a store that does not know of a run any more is not asked about it in a loop', () => {
  it('where it has lost its records', async () => {
    const fleet = new Fleet()
    const watcher = await watching(fleet)
    memoryNamespace(fleet.storeName, 'default').tasks.clear()
    await fleet.advance(5_000)
    expect(watcher.link.count('inspect')).toBe(1)
    // And the task is known again, and goes on.
    await fleet.advance(20_000)
    expect(watcher.link.requests('claim').length).toBeLessThan(6)
    expect(fleet.slotsRun).toEqual([10, 30])
  })

  it('where its clock has been set back', async () => {
    const fleet = new Fleet()
    const watcher = await watching(fleet)
    fleet.time.stepStore(-5_000)
    await fleet.advance(9_000)
    expect(watcher.link.count('inspect')).toBeLessThan(10)
  })
})
