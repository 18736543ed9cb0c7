import { countOn } from '../counting/counter.ts'
import type { Finding, Scenario } from '../scenario.ts'
import type { KeepingCost } from '../worker/keeper.ts'
import { startWorker } from '../worker/worker.ts'

const leases = 10_000
const heldMs = 30_000

export const heartbeats: readonly Scenario[] = (['redis', 'postgres'] as const).map((store) => ({
  name: `${store}.heartbeat`,
  what: `${leases.toLocaleString('en')} leases of a ttl of 30 s, held for ${heldMs / 1_000} s by one process`,
  async run(stores) {
    const counted = await countOn(store, stores)
    const { counter, ...place } = counted.place(0)
    const keeper = await startWorker('keeper', { store, ...place })
    await keeper.call('take', leases)
    counter.reset()
    const cost = await keeper.call<KeepingCost>('keep', heldMs)
    const commands = counter.count()
    await counted.pause()
    await keeper.close()
    const figures = {
      commandsPerTenSeconds: commands / (heldMs / 10_000),
      cpuPercent: cost.cpuPercent,
      eventLoopDelayMsP99: cost.eventLoopDelayMsP99,
      eventLoopDelayMsMax: cost.eventLoopDelayMsMax,
      leasesLost: cost.leasesLost,
    } as const
    return Object.entries(figures).map(
      ([metric, value]) => ({ subject: 'leasehold', role: 'ours', metric, values: [value] }) as Finding,
    )
  },
}))
