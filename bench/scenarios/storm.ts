import { setTimeout as sleep } from 'node:timers/promises'
import { countOn } from '../counting/counter.ts'
import type { Finding, Role, Scenario } from '../scenario.ts'
import { quantile } from '../statistics.ts'
import type { Stores } from '../stores.ts'
import type { NodeSetup, StormRun } from '../worker/node.ts'
import { startWorker } from '../worker/worker.ts'

const tasks = 1_000
const nodes = 3
/** From the start of the nodes to the slot: they register meanwhile. */
const leadMs = 6_000
/** The slot's traffic begins a little before it. */
const earlyMs = 500
const afterMs = 4_000

interface StormSubject extends Pick<NodeSetup, 'scheduler' | 'store'> {
  readonly name: string
  readonly role: Role
}

const subjects: readonly StormSubject[] = [
  { name: 'leasehold', role: 'ours', scheduler: 'leasehold', store: 'redis' },
  { name: 'leasehold on PostgreSQL', role: 'ours', scheduler: 'leasehold', store: 'postgres' },
  { name: 'node-cron with a Redis coordinator', role: 'peer', scheduler: 'node-cron', store: 'redis' },
]

export const storm: Scenario = {
  name: 'scheduler.storm',
  what: `${tasks.toLocaleString('en')} tasks due in the same second, on ${nodes} processes`,
  async run(stores) {
    const findings: Finding[] = []
    for (const [index, subject] of subjects.entries())
      findings.push(...(await storming(subject, index, stores)))
    return findings
  },
}

/** Timed while it is counted: the server's record makes it later, if anything. */
async function storming(
  { name, role, ...kind }: StormSubject,
  index: number,
  stores: Stores,
): Promise<Finding[]> {
  const counted = await countOn(kind.store, stores)
  // Its own places: the other scenarios' are among them.
  const { counter, ...place } = counted.place(10 + index)
  const fleet = await Promise.all(
    Array.from({ length: nodes }, () => startWorker('node', { ...kind, ...place, tasks })),
  )
  const slot = Math.ceil((Date.now() + leadMs) / 1_000) * 1_000
  await Promise.all(fleet.map((node) => node.call('schedule', slot)))
  const untilSlot = slot - earlyMs - Date.now()
  if (untilSlot < 0) throw new Error(`${name} took longer than ${leadMs} ms to start`)
  await sleep(untilSlot)
  counter.reset()
  await sleep(earlyMs + afterMs)
  const commands = counter.count()
  const runs = (await Promise.all(fleet.map((node) => node.call<StormRun[]>('runs')))).flat()
  await Promise.all(fleet.map((node) => node.close()))
  await counted.pause()
  const ran = new Set(runs.map(([task]) => task))
  if (ran.size !== tasks) throw new Error(`${name} ran ${ran.size} of ${tasks} tasks in ${afterMs} ms`)
  const lateness = runs.map(([, latenessMs]) => latenessMs)
  return [
    { subject: name, role, metric: 'latenessMsP50', values: [quantile(lateness, 0.5)] },
    { subject: name, role, metric: 'latenessMsP99', values: [quantile(lateness, 0.99)] },
    { subject: name, role, metric: 'commandsPerSlotAndNode', values: [commands / tasks / nodes] },
    { subject: name, role, metric: 'runsPerSlot', values: [runs.length / tasks] },
  ]
}
