import { askStore } from '../core/store-call.ts'
import type { Desk } from './desk.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/** Asks a run on another node to stop, once for the whole fleet: all nodes ask under one request id. Never rejects. */
export async function requestStop(
  { context }: Desk,
  { storedName, name }: TaskDefinition,
  { fence, slot, reason }: { readonly fence: number; readonly slot: number; readonly reason: string },
): Promise<void> {
  const request = {
    task: storedName,
    kind: 'cancel',
    requestId: `overlap:${fence}:${slot}`,
    by: reason,
    fence,
  } as const
  try {
    await askStore(context, `ask a run of ${JSON.stringify(name.slice(0, 100))} to stop`, async (call) => {
      const answer = await context.session.tasks.control(request, call)
      if (answer.outcome === 'failed') throw answer.error
    })
  } catch (error) {
    reportError(context, error, name)
  }
}
