import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../scenario.ts'
import { fileSubjects } from '../subjects/files.ts'
import { startWorker } from '../worker/worker.ts'
import { throughputs } from './cycle.ts'

export const sqliteCycles: readonly Scenario[] = [
  { name: 'sqlite.cycle.1', processes: 1, what: 'one process' },
  { name: 'sqlite.cycle.4procs', processes: 4, what: 'four processes' },
].map(({ name, processes, what }) => ({
  name,
  what: `acquire and release of fresh keys on one host, ${what}, one caller in each`,
  async run(stores, pace) {
    const fleets = await Promise.all(
      fileSubjects.map(async (subject) => {
        const folder = join(stores.folder(), `${name}-${subject.name}`)
        mkdirSync(folder, { recursive: true })
        const setup = { family: 'files', subject: subject.name, url: folder }
        return Promise.all(Array.from({ length: processes }, () => startWorker('holder', setup)))
      }),
    )
    const turns = fileSubjects.map((subject, index) => ({
      name: subject.name,
      role: subject.role,
      run: async (ms: number) => {
        const fleet = fleets[index] ?? []
        const rates = await Promise.all(fleet.map((worker) => worker.call<number>('cycle', 1, ms)))
        return rates.reduce((sum, rate) => sum + rate, 0)
      },
    }))
    for (const [worker] of fleets) await worker?.call('assertExcludes')
    const findings = await throughputs(turns, pace)
    await Promise.all(fleets.flat().map((worker) => worker.close()))
    return findings
  },
}))
