import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Stores } from './stores.ts'
import { startWorker } from './worker/worker.ts'

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const callers = 100
const warmUpMs = 2_000
const profiledMs = 4_000
const shownFunctions = 30

/** Writes a CPU profile of our cycles on Redis into a folder. @returns the functions that took the most time themselves */
export async function profileCycles(stores: Stores, folder: string): Promise<string> {
  const setup = { family: 'redis', subject: 'leasehold', url: (await stores.redis()).url }
  const worker = await startWorker('holder', setup)
  await worker.call('cycle', callers, warmUpMs)
  const { cyclesPerSecond, profile } = await worker.call<Profiled>('profile', callers, profiledMs)
  await worker.close()
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `redis.cycle.${callers}.cpuprofile`)
  writeFileSync(path, JSON.stringify(profile))
  return [`${path}: ${Math.round(cyclesPerSecond)} cycles per second`, ...selfTimes(profile)].join('\n')
}

interface Profiled {
  readonly cyclesPerSecond: number
  readonly profile: CpuProfile
}

/** One line per function, the greatest share first; time in which the process had nothing to do does not count. */
export function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): string[] {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber } }) => {
      const place = url.replace(/^.*\/(?=(dist|dist-programs|node_modules)\/)/, '').replace('file://', '')
      return [
        id,
        `${functionName || '(anonymous)'} ${place}${place === '' ? '' : `:${lineNumber + 1}`}`.trim(),
      ]
    }),
  )
  const times = new Map<string, number>()
  for (const [index, sample] of samples.entries()) {
    const name = names.get(sample) ?? ''
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[index] ?? 0))
  }
  times.delete('(idle)')
  const total = [...times.values()].reduce((sum, time) => sum + time, 0)
  return [...times]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, shownFunctions)
    .map(([name, time]) => `${((100 * time) / total).toFixed(1).padStart(5)} %  ${name}`)
}
