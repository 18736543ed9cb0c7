import type { Driver } from '../src/driver/index.ts'
import type { MemoryNamespace } from '../src/drivers/memory/table.ts'
import type { VirtualTime } from '../test/core/virtual-time.ts'
import type { History, TaskEnd } from './history.ts'
import { type ClassesUnderTrial, type Life, maxAttempts } from './life.ts'
import type { Plan } from './plan.ts'

export interface TaskEndsOptions {
  readonly plan: Plan
  readonly history: History
  readonly time: VirtualTime
  readonly table: MemoryNamespace
  readonly driver: Driver
  readonly classes: ClassesUnderTrial
  readonly living: readonly Life[]
}

/** Notes what became of the tasks: as the store has them, and as an uninvolved process gets to see them. */
export async function noteTasks(options: TaskEndsOptions): Promise<void> {
  const { plan, history, time, driver, classes } = options
  if (plan.tasks.length === 0) return
  const locks = new classes.LockService({ driver, clock: time.worker() })
  const onlooker = new classes.TaskScheduler({ locks })
  for (const name of [
    ...plan.tasks.map((task) => task.name),
    ...(plan.fired === null ? [] : [plan.fired.name]),
  ]) {
    const entries = await time.until(onlooker.history(name, { limit: 1_000 }))
    const told = entries.map(({ slot, attempt, state, reason }) => {
      return { slot: slot.getTime(), attempt, state, reason }
    })
    const task = taskEnd(options, name, told)
    if (task !== null) history.add({ kind: 'task-end', task })
  }
  await time.until(locks.close())
}

function taskEnd(
  { plan, time, table, living }: TaskEndsOptions,
  name: string,
  told: TaskEnd['told'],
): TaskEnd | null {
  const row = table.tasks.get(name)
  const planned = plan.tasks.find((task) => task.name === name)
  if (row === undefined) return null
  const { everyMs } = JSON.parse(row.definition) as { everyMs: number }
  const isEdited = everyMs === planned?.editedEveryMs
  const log = [...(table.runs.get(name)?.values() ?? [])]
  return {
    name,
    storeNow: time.storeNow(),
    mark: row.mark,
    everyMs,
    onCrash: planned?.onCrash ?? 'skip',
    maxAttempts,
    isPaused: row.pausedBy !== null,
    // Of what is fired nobody promises that it is.
    isAttended: planned !== undefined && living.some((life) => life.isEdited === isEdited),
    isUnedited: row.generation === 1,
    isRunning: row.run !== null,
    lapsedForMs: row.run === null ? 0 : Math.max(0, time.storeNow() - row.run.expiresAt),
    orders: row.orders,
    log: log.map(({ slot, attempt, state, reason, after, gap, late }) => {
      return { slot, attempt, state, reason, after, gap, late }
    }),
    told,
  }
}
