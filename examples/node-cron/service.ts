// A service whose jobs node-cron fires, as it always has. It may run as any number of processes: each slot of a job runs
// in one of them.
//
//   LEASEHOLD_URL=redis://localhost:6379 node service.js
import { connect, ScheduledTaskStore } from 'leasehold'
import { guardNodeCron } from 'leasehold/integrations'
import cron from 'node-cron'
import { setTimeout as sleep } from 'node:timers/promises'

const locks = await connect()
const store = new ScheduledTaskStore({ locks })

// Was: cron.schedule('* * * * * *', countVisitors)
cron.schedule('* * * * * *', guardNodeCron(store, 'count-visitors', countVisitors))

// Was: cron.schedule('*/2 * * * * *', sendDigest, { timezone: 'Europe/Paris' })
cron.schedule('*/2 * * * * *', guardNodeCron(store, 'send-digest', sendDigest), { timezone: 'Europe/Paris' })

async function countVisitors({ date }: { readonly date: Date }): Promise<void> {
  console.log(`counted the visitors of ${date.toISOString()}`)
}

async function sendDigest({ date }: { readonly date: Date }): Promise<void> {
  console.log(`sending the digest of ${date.toISOString()}`)
  await sleep(1_000)
  console.log(`sent the digest of ${date.toISOString()}`)
}

process.once('SIGTERM', async () => {
  // No new fire; what runs goes on under its lease, which is given back before the connection ends.
  await cron.shutdown()
  await store.stop({ drain: '30s' })
  await locks.close()
})
console.log('ready')
