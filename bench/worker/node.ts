import { LockService, TaskScheduler } from 'leasehold'
import { lockPerFire } from '../../test/programs/node-cron-lock.ts'
import { loadPeer } from '../peers.ts'
import { openRedisConnections } from '../subjects/redis.ts'
import { openDriver } from './open-driver.ts'
import type { Verbs } from './protocol.ts'

export interface NodeSetup {
  readonly scheduler: 'leasehold' | 'node-cron'
  readonly store: 'redis' | 'postgres'
  readonly url: string
  readonly application: string
  readonly tasks: number
}

/** One run of a task: its number, and how many milliseconds after its slot it began. */
export type StormRun = readonly [task: number, latenessMs: number]

/** A node of a fleet whose tasks are all due in the same second. */
export async function openNode(setup: NodeSetup): Promise<Verbs> {
  const runs: StormRun[] = []
  let ending: () => Promise<unknown> = async () => {}
  return {
    /** @param slot when all of them are due, a whole second */
    async schedule(slot: number) {
      const at = new Date(slot)
      const cron = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`
      const told = (task: number) => void runs.push([task, Date.now() - slot])
      ending = await (setup.scheduler === 'leasehold' ? ours(setup, cron, told) : nodeCron(setup, cron, told))
    },
    async runs() {
      return runs
    },
    async close() {
      await ending()
    },
  }
}

type Told = (task: number) => void

async function ours({ tasks, ...place }: NodeSetup, cron: string, told: Told) {
  const { driver, close } = await openDriver(place)
  const locks = new LockService({ driver, namespace: 'storm' })
  const scheduler = new TaskScheduler({ locks })
  for (let task = 0; task < tasks; task++) scheduler.schedule(`task-${task}`, { cron }, () => told(task))
  await scheduler.start()
  return async () => {
    await scheduler.stop()
    await locks.close()
    await close()
  }
}

interface NodeCronModule {
  schedule(cron: string, job: () => void, options: object): { destroy(): unknown }
}

/** With the coordinator that its documentation describes: a lock of Redis per fire, given back after the run. */
async function nodeCron({ url, tasks }: NodeSetup, cron: string, told: Told) {
  const { schedule } = await loadPeer<NodeCronModule>('node-cron')
  const { ioredis, close } = await openRedisConnections(url)
  const runCoordinator = lockPerFire(ioredis, 'node-cron:')
  const jobs = Array.from({ length: tasks }, (_, task) => {
    const options = { name: `task-${task}`, timezone: 'UTC', distributed: true, runCoordinator }
    return schedule(cron, () => told(task), options)
  })
  return async () => {
    for (const job of jobs) await job.destroy()
    await close()
  }
}
