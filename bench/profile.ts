import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
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
const profiledMs = 5_000
const shownFunctions = 30

/** Writes a CPU profile of our cycles on Redis into a folder. @returns the functions that took the most time themselves */
export async function profileCycles(stores: Stores, folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true })
  const before = new Set(readdirSync(folder))
  const setup = { family: 'redis', subject: 'leasehold', url: (await stores.redis()).url }
  const options = ['--cpu-prof', `--cpu-prof-dir=${resolve(folder)}`]
  const worker = await startWorker('holder', setup, options)
  const rate = await worker.call<number>('cycle', callers, profiledMs)
  await worker.close()
  const written = readdirSync(folder).find((name) => !before.has(name) && name.endsWith('.cpuprofile'))
  if (written === undefined) throw new Error(`No profile was written to ${folder}`)
  const path = join(folder, written)
  const profile = JSON.parse(readFileSync(path, 'utf8')) as CpuProfile
  return [`${path}: ${Math.round(rate)} cycles per second`, ...selfTimes(profile)].join('\n')
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
