import type { Finding, Scenario } from '../scenario.ts'
import { startWorker } from '../worker/worker.ts'

const leases = 10_000
const rounds = 3

export const memoryPerLease: Scenario = {
  name: 'memory.perlease',
  what: `heap of ${leases.toLocaleString('en')} held leases, after garbage collection`,
  async run(stores) {
    const { url } = await stores.redis()
    const places = [
      { subject: 'leasehold', store: 'redis', url: `${url}/15` },
      { subject: 'leasehold in-process, with its store', store: 'memory' },
    ]
    const findings: Finding[] = []
    for (const { subject, ...setup } of places) {
      const values: number[] = []
      for (let round = 0; round < rounds; round++) {
        const keeper = await startWorker('keeper', setup, ['--expose-gc'])
        values.push(await keeper.call<number>('heapPerLease', leases))
        await keeper.close()
      }
      findings.push({ subject, role: 'ours', metric: 'heapBytesPerLease', values })
    }
    return findings
  },
}
