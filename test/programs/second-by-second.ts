// One process of a fleet in which a scheduler fires a job of 5 ms each second, guarded in one way or another. Arguments:
// how late its timers ring, the way, the URL of the store, the namespace. Tells its parent of every run; SIGTERM ends it.
import { promptTimeout } from './late-timers.ts'
import { CronJob } from 'cron'
import { Cron } from 'croner'
import { Redis } from 'ioredis'
import { connect, type LockService, ScheduledTaskStore } from 'leasehold'
import {
  everySlot,
  guardCroner,
  guardCronJob,
  guardNodeCron,
  guardNodeSchedule,
  nodeCronCoordinator,
} from 'leasehold/integrations'
import { schedule, type TaskContext } from 'node-cron'
import { scheduleJob } from 'node-schedule'
import { lockPerFire } from './node-cron-lock.ts'

export type Way =
  | 'node-cron'
  | 'node-cron, coordinated'
  | 'node-cron, a lock per fire'
  | 'node-cron, alone'
  | 'cron'
  | 'croner'
  | 'node-schedule'
  | 'an interval'

/** What it tells. */
export type Report = { readonly event: 'ready' } | { readonly event: 'ran'; readonly slot: number }

const [, , , way, url, namespace] = process.argv as [string, string, string, Way, string, string]
const everySecond = '* * * * * *'
let ending: (() => unknown)[] = []

/** The job: 5 ms, in whose process nobody else is late. */
async function work(slot: Date | null | undefined): Promise<void> {
  tell({ event: 'ran', slot: Math.floor(Number(slot) / 1_000) * 1_000 })
  await new Promise((resolve) => promptTimeout(resolve, 5))
}

const fireWith: Record<Way, (store: ScheduledTaskStore) => void> = {
  'node-cron': (store) => {
    const job = guardNodeCron(store, 'job', ({ date }: TaskContext) => work(date))
    schedule(everySecond, job)
  },
  'node-cron, coordinated': (store) => {
    const runCoordinator = nodeCronCoordinator(store)
    schedule(everySecond, ({ date }) => work(date), { name: 'job', distributed: true, runCoordinator })
  },
  'node-cron, a lock per fire': () => {
    const redis = new Redis(url)
    const runCoordinator = lockPerFire(redis, `${namespace}:`)
    schedule(everySecond, ({ date }) => work(date), { name: 'job', distributed: true, runCoordinator })
    ending.push(() => redis.disconnect())
  },
  'node-cron, alone': () => {
    schedule(everySecond, ({ date }) => work(date))
  },
  cron: (store) => {
    const job: CronJob = new CronJob(everySecond, () => work(job.lastExecution))
    guardCronJob(store, 'job', job).start()
  },
  croner: (store) => {
    guardCroner(store, 'job', new Cron(everySecond), (self) => work(self.currentRun()))
  },
  'node-schedule': (store) => {
    scheduleJob(
      everySecond,
      guardNodeSchedule(store, 'job', (fireDate) => work(fireDate)),
    )
  },
  'an interval': (store) => {
    everySlot(store, 'job', '1s', ({ slot }) => work(slot))
  },
}

const locks: LockService = await connect(url, { namespace })
const store = new ScheduledTaskStore({ locks })
ending = [() => store.stop(), () => locks.close()]
fireWith[way](store)
process.once('SIGTERM', () => void end())
tell({ event: 'ready' })

async function end(): Promise<void> {
  for (const each of ending) await each()
  process.exit(0)
}

function tell(report: Report): void {
  process.send?.(report)
}
