import { quoted } from '../core/errors.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import { toStoredKey } from '../core/stored-key.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import { readDefinition } from './definition-text.ts'
import { laneName } from './lanes.ts'
import type { TaskRead } from './overlaps.ts'

/** The record of a task; null if the store knows none. @throws InvalidOptionError, StoreUnavailableError, StoreUnusableError */
export async function readTask(context: ServiceContext, name: string): Promise<TaskRecord | null> {
  const [record = null] = await readRecords(context, name, [toStoredKey('name', name)])
  return record
}

/** The records of a task's lanes that the store knows. @throws StoreUnavailableError, StoreUnusableError */
export async function readLanes(
  context: ServiceContext,
  name: string,
  task: TaskRecord,
): Promise<TaskRecord[]> {
  const lanes = lanesOf(task)
  if (lanes.length === 0) return []
  return (await readRecords(context, name, lanes)).filter((record) => record !== null)
}

/** The stored names of a task's lanes, as its record has them. */
export function lanesOf(record: TaskRecord | null): string[] {
  if (record === null) return []
  const { laneCount } = readDefinition(record.definition)
  return Array.from({ length: laneCount }, (_, index) => laneName(record.task, index))
}

/** What the log of a task is read with, as its record has it; null if its schedule cannot be read. */
export function readingOf({ definition, running, now }: TaskRecord): TaskRead | null {
  const { jitterMs, laneCount, schedule } = readDefinition(definition)
  const known = schedule()
  if (known === null) return null
  const hasLapsed = running !== null && running.remainingMs <= 0
  const lapsed = hasLapsed ? { fence: running.fence, at: now + running.remainingMs } : null
  return { schedule: known, jitterMs, laneCount, lapsed }
}

function readRecords(
  context: ServiceContext,
  name: string,
  storedNames: readonly string[],
): Promise<readonly (TaskRecord | null)[]> {
  return askStore(context, `look up ${quoted(name)}`, (call) =>
    context.session.tasks.inspect(storedNames, call),
  )
}
