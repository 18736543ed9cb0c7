// A pod: a scheduler on a store, which tells its starter what its tasks do. Ends at SIGTERM, after a drain.
import { type TaskOptions, TaskScheduler } from 'leasehold'
import { openLocks, type StoreAddress } from './open-locks.ts'

/** Its first argument, as JSON. */
export interface TaskPodSettings {
  readonly address: StoreAddress
  readonly namespace: string
  /** Tasks whose handlers take this long, or until they are asked to stop. */
  readonly tasks: Readonly<Record<string, { readonly options: TaskOptions; readonly workMs: number }>>
}

/** What it tells. */
export type TaskPodEvent =
  | { readonly event: 'ready' }
  | {
      readonly event: 'begun' | 'done'
      readonly task: string
      readonly slot: number
      readonly isHeld: boolean
    }
  | { readonly event: 'stopped'; readonly task: string; readonly slot: number; readonly why: string }

const { address, namespace, tasks } = JSON.parse(process.argv[2] ?? '{}') as TaskPodSettings
const { locks, end } = await openLocks(address, { namespace })
const scheduler = new TaskScheduler({ locks, controlEvery: '500ms' })
const tell = (event: TaskPodEvent): void => void process.send?.(event)

for (const [task, { options, workMs }] of Object.entries(tasks)) {
  scheduler.schedule(task, options, async (run) => {
    const slot = run.slot.getTime()
    tell({ event: 'begun', task, slot, isHeld: run.isHeld() })
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, workMs)
      run.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        tell({ event: 'stopped', task, slot, why: String(run.signal.reason) })
        reject(run.signal.reason as Error)
      })
    })
    tell({ event: 'done', task, slot, isHeld: run.isHeld() })
  })
}
process.once('SIGTERM', () => {
  void scheduler
    .stop({ drain: '30s' })
    .then(end)
    .then(() => process.disconnect())
})
await scheduler.start()
tell({ event: 'ready' })
