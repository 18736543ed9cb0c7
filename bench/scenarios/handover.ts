import { countOn } from '../counting/counter.ts'
import { freshKey } from '../mutex.ts'
import type { Finding, Role, Scenario } from '../scenario.ts'
import { mean, quantile } from '../statistics.ts'
import { postgresSubjects } from '../subjects/postgres.ts'
import { redisSubjects } from '../subjects/redis.ts'
import type { Interval } from '../worker/holder.ts'
import { startWorker, type Worker } from '../worker/worker.ts'

const processes = 2
const waiters = 25
const holdMs = 1
/** A subject is timed so often, or until it has taken so long. */
const rounds = 7
const patienceMs = 3_000

/** What waits by a means of its own. */
export const waitingSubjects = {
  redis: redisSubjects.filter(({ name, role }) => name === 'leasehold' || role === 'peer'),
  postgres: postgresSubjects.filter(
    ({ name, role }) => name === 'leasehold' || role === 'peer' || role === 'raw',
  ),
} as const

export const handovers: readonly Scenario[] = (['redis', 'postgres'] as const).map((store) => ({
  name: `${store}.handover`,
  what: `${processes} × ${waiters} waiters in two processes take one key in turn, each for ${holdMs} ms`,
  async run(stores) {
    const counted = await countOn(store, stores)
    const queues = await Promise.all(
      waitingSubjects[store].map(async ({ name, role }, index) => {
        const { counter, ...place } = counted.place(index)
        const setup = { family: store, subject: name, ...place }
        const workers = await Promise.all(
          Array.from({ length: processes }, () => startWorker('holder', setup)),
        )
        return { name, role, workers, counter, gaps: [] as number[][], tookMs: 0, commands: 0 }
      }),
    )
    await counted.pause()
    for (let round = 0; round < rounds; round++) {
      for (const queue of queues.filter(({ tookMs }) => tookMs < patienceMs)) {
        const startedAt = performance.now()
        queue.gaps.push(await passOn(queue.workers))
        queue.tookMs += performance.now() - startedAt
      }
    }
    await counted.resume()
    for (const queue of queues) {
      queue.counter.reset()
      await passOn(queue.workers)
      queue.commands = queue.counter.count()
    }
    await counted.pause()
    await Promise.all(queues.flatMap(({ workers }) => workers).map((worker) => worker.close()))
    // The first time warms up, unless it is the only one.
    return queues.flatMap(({ name, role, gaps, commands }) =>
      figures(name, role, gaps.length > 1 ? gaps.slice(1) : gaps, commands),
    )
  },
}))

function figures(subject: string, role: Role, gaps: readonly number[][], commands: number): Finding[] {
  return [
    { subject, role, metric: 'gapMs', values: gaps.map(mean) },
    { subject, role, metric: 'gapMsP99', values: gaps.map((each) => quantile(each, 0.99)) },
    { subject, role, metric: 'commandsPerHandover', values: [commands / (processes * waiters)] },
  ]
}

/** One key goes through all waiters. @returns how long nobody had it, between one and the next */
async function passOn(workers: readonly Worker[]): Promise<number[]> {
  const key = freshKey()
  const intervals = await Promise.all(
    workers.map((worker) => worker.call<Interval[]>('queue', key, waiters, holdMs)),
  )
  const inOrder = intervals.flat().toSorted(([a], [b]) => a - b)
  return inOrder.slice(1).map(([grantedAt], index) => {
    const gap = grantedAt - (inOrder[index] as Interval)[1]
    if (gap < 0) throw new Error('Two had the key at once')
    return gap
  })
}
