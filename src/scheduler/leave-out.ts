import { Completion } from './completion.ts'
import type { Desk } from './desk.ts'
import type { TaskDefinition } from './task-options.ts'

/** Records that a slot was granted and is not begun after all. Asks the store once. */
export function leaveOut(
  desk: Desk,
  definition: TaskDefinition,
  { slot, attempt, fence }: { readonly slot: number; readonly attempt: number; readonly fence: number },
  reason: string,
): void {
  const completion = new Completion(desk, definition)
  completion.giveUp()
  const task = definition.storedName
  void completion.record({ task, slot, attempt, fence, outcome: 'skipped', reason, error: null })
}
