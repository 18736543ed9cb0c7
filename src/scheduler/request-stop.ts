import { quoted } from '../core/errors.ts'
import type { Desk } from './desk.ts'
import { reportError } from './report-error.ts'
import { sendControl } from './task-control.ts'
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
    await sendControl(context, `ask a run of ${quoted(name)} to stop`, request)
  } catch (error) {
    reportError(context, error, name)
  }
}
