import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as realSleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { InvalidOptionError, ScheduledTaskStore } from 'leasehold'
import { TestFleet } from 'leasehold/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { programPath } from '../../support/programs.ts'

const run = promisify(execFile)

function newFleet(...options: ConstructorParameters<typeof TestFleet>): TestFleet {
  const fleet = new TestFleet(...options)
  onTestFinished(() => fleet.close())
  return fleet
}

describe('a fleet in virtual time', () => {
  it('fires what is due while time passes, and nothing before', async () => {
    const fleet = newFleet({ startAt: '2026-03-28T12:00:00Z' })
    const { tasks } = fleet.node()
    const days: string[] = []
    tasks.schedule('digest', { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }, ({ slot }) => {
      days.push(slot.toISOString())
    })
    await fleet.start()
    await fleet.advance('12h')
    expect(days).toEqual([])
    await fleet.advance('48h')
    expect(days).toEqual(['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'])
    expect(fleet.now).toEqual(new Date('2026-03-31T00:00:00Z'))
  })

  it('runs each slot in one of its nodes', async () => {
    const fleet = newFleet()
    const ran: string[] = []
    for (const name of ['one', 'two', 'three']) {
      const task = ({ slot }: { slot: Date }) => void ran.push(`${name} ${slot.toISOString()}`)
      fleet.node().tasks.schedule('tick', { every: '10m' }, task)
    }
    await fleet.start()
    await fleet.advance('3h')
    expect(ran).toHaveLength(18)
    expect(new Set(ran.map((line) => line.split(' ')[1])).size).toBe(18)
  })

  it('takes the same course with the same seed', async () => {
    const course = async (seed: number): Promise<string[]> => {
      const fleet = newFleet({ seed })
      const ran: string[] = []
      for (const name of ['one', 'two', 'three'])
        fleet.node().tasks.schedule('tick', { every: '10m' }, () => void ran.push(name))
      await fleet.start()
      await fleet.advance('2h')
      return ran
    }
    expect(await course(7)).toEqual(await course(7))
  })

  it('waits for handlers that do something real', async () => {
    const fleet = newFleet()
    const { tasks } = fleet.node()
    const sizes: number[] = []
    tasks.schedule('read', { every: '1h' }, async () => {
      const text = await readFile(fileURLToPath(import.meta.url), 'utf8')
      await realSleep(30)
      sizes.push(text.length)
    })
    await fleet.start()
    await fleet.advance('2h')
    expect(sizes).toHaveLength(2)
    expect((await tasks.history('read')).filter(({ state }) => state === 'succeeded')).toHaveLength(2)
  })

  it('has handlers take their time in virtual time', async () => {
    const fleet = newFleet()
    const { tasks } = fleet.node()
    tasks.schedule('slow', { every: '1m' }, () => fleet.sleep('90s'))
    await fleet.start()
    await fleet.advance('4m')
    const states = (await tasks.history('slow')).map(({ state, reason }) => reason ?? state)
    expect(states.toReversed()).toEqual(['registered', 'succeeded', 'overlap', 'running', 'overlap'])
  })

  it('does not wait for ever for a handler that waits for its signal', async () => {
    const fleet = newFleet({ patience: '20ms' })
    const { tasks } = fleet.node()
    let reason: unknown
    tasks.schedule('stuck', { every: '1h', maxLifetime: '5m', ttl: '1m' }, async ({ signal }) => {
      await once(signal, 'abort')
      reason = signal.reason
    })
    await fleet.start()
    await fleet.advance('2h')
    expect(reason).toBeInstanceOf(Error)
  })

  it('loses a node in the middle of a run: another repeats it, with its attempt counted', async () => {
    const fleet = newFleet()
    const nodes = [fleet.node(), fleet.node()]
    const attempts: [number, number][] = []
    for (const [index, { tasks }] of nodes.entries()) {
      tasks.schedule(
        'close-books',
        { cron: '0 2 * * *', onCrash: 'retry', ttl: '30s' },
        async ({ attempt }) => {
          attempts.push([index, attempt])
          await fleet.sleep('10s')
        },
      )
    }
    await fleet.start()
    await fleet.advanceTo('2026-01-01T02:00:05Z')
    const [[first] = [0]] = attempts
    nodes[first]?.crash()
    await fleet.advance('1m')
    expect(attempts).toEqual([
      [first, 1],
      [1 - first, 2],
    ])
    const history = await nodes[1 - first]?.tasks.history('close-books')
    expect(history?.map(({ attempt, state }) => [attempt, state]).slice(0, 2)).toEqual([
      [2, 'succeeded'],
      [1, 'lost'],
    ])
  })

  it('frees the locks of a node that crashed one ttl later', async () => {
    const fleet = newFleet()
    const [one, other] = [fleet.node(), fleet.node()]
    const lease = await one.locks.acquire('key', { ttl: '30s' })
    await fleet.advance('10m')
    expect([lease?.isHeld(), await other.locks.acquire('key')]).toEqual([true, null])
    one.crash()
    await fleet.advance('31s')
    expect(await other.locks.acquire('key')).not.toBeNull()
  })

  it('tells what handlers threw, and goes on', async () => {
    const fleet = newFleet()
    const { tasks } = fleet.node()
    tasks.schedule('fails', { every: '1h' }, ({ slot }) => {
      if (slot.getUTCHours() === 1) expect('this').toBe('that')
    })
    await fleet.start()
    await fleet.advance('3h')
    expect(fleet.failures).toEqual([
      {
        task: 'fails',
        slot: new Date('2026-01-01T01:00:00Z'),
        error: expect.objectContaining({ name: 'AssertionError' }),
      },
    ])
  })

  it('waits for a promise, with as much time as that takes', async () => {
    const fleet = newFleet()
    const [one, other] = [fleet.node(), fleet.node()]
    await one.locks.acquire('key', { ttl: '30s', heartbeat: false })
    const lease = await fleet.until(other.locks.acquire('key', { wait: '5m' }))
    expect(lease?.isHeld()).toBe(true)
    expect(fleet.now.getTime() - Date.parse('2026-01-01T00:00:00Z')).toBeLessThan(40_000)
    await expect(fleet.until(new Promise(() => {}), '1h')).rejects.toThrow('did not settle')
  })

  it('serves what something else fires, too', async () => {
    const fleet = newFleet()
    const stores = [fleet.node(), fleet.node()].map(({ locks }) => new ScheduledTaskStore({ locks }))
    await fleet.advance('1h')
    const outcomes = await fleet.until(
      Promise.all(stores.map((store) => store.run('hourly', () => {}, { cron: '0 * * * *' }))),
    )
    expect(outcomes.toSorted()).toEqual(['ran', 'skipped'])
  })

  it('works while the test framework fakes the timers', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const fleet = newFleet()
    const { tasks } = fleet.node()
    let ran = 0
    tasks.schedule('tick', { every: '1h' }, () => void ran++)
    await fleet.start()
    await fleet.advance('5h')
    expect(ran).toBe(5)
  })

  it('works while a framework fakes all that can be waited for', async () => {
    const { stdout } = await run(process.execPath, [programPath('under-fakes')])
    expect(stdout).toBe('5\n')
  })

  it('leaves nothing behind', async () => {
    const fleet = new TestFleet()
    const nodes = [fleet.node(), fleet.node()]
    for (const { tasks } of nodes) tasks.schedule('tick', { every: '1m' }, () => fleet.sleep('1d'))
    await fleet.start()
    await fleet.advance('90s')
    nodes[0]?.crash()
    await fleet.close()
    await fleet.close()
    await fleet.advance('2d')
    expect(fleet.clock.timers).toEqual([])
  })

  it('refuses what it cannot do', async () => {
    const fleet = newFleet()
    await fleet.advance('1h')
    await expect(fleet.advanceTo('2026-01-01T00:59:00Z')).rejects.toThrow(RangeError)
    await expect(fleet.advanceTo('soon')).rejects.toThrow('no instant')
    await expect(fleet.advance('-1h')).rejects.toThrow(InvalidOptionError)
    expect(() => new TestFleet({ startAt: 'soon' })).toThrow(RangeError)
  })

  it('runs under the test runner of Node.js, which ends by itself', async () => {
    const { stdout } = await run(process.execPath, [
      '--test',
      '--test-reporter=tap',
      programPath('under-node-test'),
    ])
    expect(stdout).toMatch(/^# pass 1$/m)
    expect(stdout).toMatch(/^# fail 0$/m)
  })
})
