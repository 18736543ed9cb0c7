import { publish } from '../core/channels.ts'
import { askStore } from '../core/store-call.ts'
import type { Desk } from './desk.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'
import type { SeenRun } from './task-view.ts'

/**
 * Tells that a run was lost for good, once the log says so: its holder may have recorded its outcome in the very last
 * moment.
 */
export async function reportLoss(desk: Desk, task: TaskDefinition, run: SeenRun): Promise<void> {
  const { context } = desk
  const query = { task: task.storedName, from: run.slot, to: run.slot + 1, limit: run.attempt + 1 }
  try {
    const rows = await askStore(context, `look up a run of ${JSON.stringify(task.name)}`, (call) =>
      context.session.tasks.log(query, call),
    )
    const isLost = rows.some(({ attempt, state }) => attempt === run.attempt && state === 'lost')
    if (!isLost) return
    const { namespace } = context.options
    publish('leasehold:slot', () => ({ namespace, task: task.name, slot: run.slot, outcome: 'lost' }))
  } catch (error) {
    reportError(context, error, task.name)
  }
}
