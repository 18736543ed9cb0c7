import { describe, expect, it } from 'vitest'
import { chosen, parseBenchArguments } from '../../bench/arguments.ts'
import { judge } from '../../bench/bars.ts'
import { assertExcludes, type Hold, type Mutex } from '../../bench/mutex.ts'
import { jsonLine, table, verdictLine } from '../../bench/output.ts'
import { selfTimes } from '../../bench/profile.ts'
import { compare } from '../../bench/results.ts'
import { inTurns } from '../../bench/rounds.ts'
import type { Finding, Pace } from '../../bench/scenario.ts'
import { scenarios } from '../../bench/scenarios/all.ts'
import { memoryCycle } from '../../bench/scenarios/cycle-memory.ts'
import { mean, quantile, summarize } from '../../bench/statistics.ts'
import { Stores } from '../../bench/stores.ts'

const cycles: readonly Finding[] = [
  { subject: 'leasehold', role: 'ours', metric: 'opsPerSecond', values: [400, 1_000, 600] },
  { subject: 'slow peer', role: 'peer', metric: 'opsPerSecond', values: [100] },
  { subject: 'fast peer', role: 'peer', metric: 'opsPerSecond', values: [150] },
  { subject: 'raw', role: 'raw', metric: 'opsPerSecond', values: [200] },
  { subject: 'raw, otherwise', role: 'other', metric: 'opsPerSecond', values: [900] },
]

describe('the statistics', () => {
  it('are medians between the least and the most, of rounds in any order', () => {
    expect(summarize([9, 1, 5])).toEqual({ median: 5, min: 1, max: 9, rounds: 3 })
    expect(summarize([4, 2])).toEqual({ median: 3, min: 2, max: 4, rounds: 2 })
  })

  it('interpolate between neighbours', () => {
    expect(quantile([0, 10], 0.25)).toBe(2.5)
    expect(quantile([7], 0.99)).toBe(7)
    expect(mean([1, 2, 6])).toBe(3)
  })

  it('refuse to say anything of nothing', () => {
    expect(() => summarize([])).toThrow(RangeError)
  })
})

describe('the arguments', () => {
  const names = scenarios.map(({ name }) => ({ name }))
  const only = (...asked: string[]) => chosen(names, asked).map(({ name }) => name)

  it('choose a scenario by its name, and a family by the first part of it', () => {
    expect(only('redis.cycle.1')).toEqual(['redis.cycle.1'])
    expect(only('redis.cycle')).toEqual(['redis.cycle.1', 'redis.cycle.100', 'redis.cycle.1000'])
    expect(only('import', 'memory')).toEqual(['memory.cycle', 'import', 'memory.perlease'])
  })

  it('choose all but the extra ones by default', () => {
    const usual = chosen(scenarios, null).map(({ name }) => name)
    expect(usual).toContain('scheduler.storm')
    expect(usual).not.toContain('bloat.postgres')
  })

  it('refuse a scenario that is none, naming those that are', () => {
    expect(() => only('redis.cycle.10')).toThrow(/no scenario redis\.cycle\.10\..* redis\.cycle\.100,/)
  })

  it('are read from the command line', () => {
    expect(parseBenchArguments([])).toEqual({ only: null, json: false, profile: null, help: false })
    const args = ['--json', '--only', 'redis', '--only', 'import']
    expect(parseBenchArguments(args)).toMatchObject({ json: true, only: ['redis', 'import'] })
    expect(() => parseBenchArguments(['--fast'])).toThrow('--fast')
  })
})

describe('the rounds', () => {
  it('put another subject first in each, and clear up before every turn', async () => {
    const order: string[] = []
    const turns = ['a', 'b', 'c'].map((name) => ({
      name,
      run: async (ms: number) => {
        order.push(name)
        return ms
      },
    }))
    const pace = { rounds: 2, roundMs: 5, warmUpMs: 1 }
    const values = await inTurns(turns, pace, async () => order.push('-'))
    expect(order.join('')).toBe('abc-a-b-c-b-c-a')
    expect(values.get('c')).toEqual([5, 5])
  })
})

describe('the results', () => {
  it('are compared with the best peer and with the raw one', () => {
    const [ours, slow] = compare('redis.cycle.1', cycles)
    expect(ours).toMatchObject({ median: 600, min: 400, max: 1_000, ratioToBestPeer: 4, ratioToRaw: 3 })
    expect(slow).toMatchObject({ ratioToBestPeer: 100 / 150, ratioToRaw: 0.5 })
  })

  it('take the least for the best where less is better', () => {
    const gaps = [2, 10, 4].map((value, index): Finding => ({
      subject: String(index),
      role: index === 0 ? 'ours' : 'peer',
      metric: 'gapMs',
      values: [value],
    }))
    expect(compare('redis.handover', gaps)[0]).toMatchObject({ ratioToBestPeer: 0.5, ratioToRaw: null })
  })

  it('are held against the bars, a missing comparison counting as missed', () => {
    const [ours] = compare('redis.cycle.100', cycles)
    expect(judge(ours!)).toEqual([
      { bar: '≥ 4 × the best peer', isMet: true },
      { bar: '≥ 2.5 × raw', isMet: true },
    ])
    const [alone] = compare('redis.cycle.1000', cycles.slice(0, 1))
    expect(judge(alone!)).toEqual([{ bar: '≥ 5 × the best peer', isMet: false }])
    expect(verdictLine([ours!, alone!])).toBe(
      '2 of 3 bars met; missed: redis.cycle.1000 opsPerSecond ≥ 5 × the best peer',
    )
  })
})

describe('the output', () => {
  const results = compare('redis.cycle.1000', cycles)

  it('is one line of JSON per result', () => {
    expect(jsonLine(results[0]!)).toBe(
      '{"scenario":"redis.cycle.1000","subject":"leasehold","metric":"opsPerSecond","value":600,"ratioToBestPeer":4,"ratioToRaw":3,"min":400,"max":1000}',
    )
  })

  it('is a table that says which bars are met', () => {
    const lines = table({ ...memoryCycle, name: 'redis.cycle.1000' }, results).split('\n')
    expect(lines.find((line) => line.startsWith('| leasehold'))).toMatch(
      /\| 600 \(400–1,000\) +\| 4 +\| 3 +\| ≥ 5 × the best peer: MISSED \|$/,
    )
    expect(new Set(lines.slice(3).map(({ length }) => length)).size).toBe(1)
  })

  it('sums a profile up by what its functions took themselves', () => {
    const frame = (functionName: string) => ({ functionName, url: 'file:///a/dist/core/b.js', lineNumber: 9 })
    const nodes = ['busy', 'idle', 'busy'].map((name, id) => ({ id, callFrame: frame(name) }))
    const idle = { id: 3, callFrame: { functionName: '(idle)', url: '', lineNumber: -1 } }
    const profile = { nodes: [...nodes, idle], samples: [0, 1, 2, 3], timeDeltas: [10, 20, 50, 900] }
    expect(selfTimes(profile)).toEqual([' 75.0 %  busy dist/core/b.js:10', ' 25.0 %  idle dist/core/b.js:10'])
  })
})

describe('a subject', () => {
  const hold: Hold = { release: async () => {} }
  const careless: Mutex = {
    tryAcquire: async () => hold,
    acquire: async () => hold,
    close: async () => {},
  }

  it('that excludes nobody is not measured', async () => {
    await expect(assertExcludes('careless', careless)).rejects.toThrow('granted a key that is held')
  })

  it('that frees nothing is not measured', async () => {
    const taken = new Set<string>()
    const tryAcquire = async (key: string) => (taken.has(key) ? null : (taken.add(key), hold))
    await expect(assertExcludes('greedy', { ...careless, tryAcquire })).rejects.toThrow('did not free')
  })
})

describe('a scenario', () => {
  it('runs from end to end without a peer and without a server', async () => {
    const pace: Pace = { rounds: 2, roundMs: 20, warmUpMs: 5 }
    const stores = new Stores()
    const findings = await memoryCycle.run(stores, pace)
    await stores.close()
    for (const { role, values } of findings) {
      expect(role).toBe('ours')
      expect(values).toHaveLength(2)
      expect(Math.min(...values)).toBeGreaterThan(0)
    }
    expect(findings.map(({ subject }) => subject)).toEqual(['leasehold', 'leasehold, 100 callers'])
  })
})
