// An application that leaves it to its environment where it keeps its locks and tasks. Tells its parent whether it got
// the lock, and which slots it ran; SIGTERM ends it.
import { connect, TaskScheduler } from 'leasehold'

/** What it tells. */
export type Report =
  | { readonly event: 'lock'; readonly isMine: boolean }
  | { readonly event: 'ran'; readonly slot: number }

const locks = await connect()
const lease = await locks.acquire('the-one')
tell({ event: 'lock', isMine: lease !== null })

const tasks = new TaskScheduler({ locks })
tasks.schedule('tick', { every: '200ms' }, ({ slot }) => tell({ event: 'ran', slot: slot.getTime() }))
await tasks.start()

process.once('SIGTERM', async () => {
  await tasks.stop()
  await locks.close()
  process.disconnect()
})

function tell(report: Report): void {
  process.send?.(report)
}
