import { setTimeout as sleep } from 'node:timers/promises'
import { countOn } from '../counting/counter.ts'
import { freshKey } from '../mutex.ts'
import type { Scenario } from '../scenario.ts'
import { startWorker } from '../worker/worker.ts'
import { waitingSubjects } from './handover.ts'

const waiters = 50
const heldMs = 10_000
/** Until everybody waits. */
const settleMs = 1_000

export const idleWaits: readonly Scenario[] = (['redis', 'postgres'] as const).map((store) => ({
  name: `${store}.idlewait`,
  what: `${waiters} waiters in a process, the key held by another for ${heldMs / 1_000} s`,
  async run(stores) {
    const counted = await countOn(store, stores)
    // All subjects at once: they are counted apart, and nothing is timed.
    const findings = await Promise.all(
      waitingSubjects[store].map(async ({ name, role }, index) => {
        const { counter, ...place } = counted.place(index)
        const key = freshKey()
        const setup = { family: store, subject: name, ...place }
        const [holder, waiter] = await Promise.all([
          startWorker('holder', setup),
          startWorker('holder', setup),
        ])
        await holder.call('hold', key)
        await waiter.call('beginToWait', key, waiters)
        await sleep(settleMs)
        const before = counter.count()
        await sleep(heldMs)
        const commands = counter.count() - before
        if ((await waiter.call<number>('grants')) !== 0) throw new Error(`${name} granted a key that is held`)
        await holder.call('free')
        await Promise.all([holder, waiter].map((worker) => worker.close()))
        return {
          subject: name,
          role,
          metric: 'commandsPerSecond' as const,
          values: [commands / (heldMs / 1_000)],
        }
      }),
    )
    await counted.pause()
    return findings
  },
}))
