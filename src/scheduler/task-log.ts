import { quoted } from '../core/errors.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import type { RunRecord, TaskRecord } from '../driver/task-driver.ts'
import { handedOverTo, laneName } from './lanes.ts'
import { lanesOf } from './task-records.ts'

/** The latest rows of a task's log, and of those of its lanes. @throws StoreUnavailableError, StoreUnusableError */
export async function readLog(
  context: ServiceContext,
  name: string,
  {
    task,
    record,
    limit,
  }: { readonly task: string; readonly record: TaskRecord | null; readonly limit: number },
): Promise<{ readonly rows: readonly RunRecord[]; readonly laneRows: readonly RunRecord[] }> {
  const read = (of: string): Promise<readonly RunRecord[]> =>
    askStore(context, `read the history of ${quoted(name)}`, (call) =>
      context.session.tasks.log({ task: of, from: null, to: null, limit }, call),
    )
  const known = lanesOf(record)
  const [rows = [], ...lanes] = await Promise.all([task, ...known].map(read))
  // Lanes that the task had before, when more of its runs could overlap.
  const former = new Set(rows.map(({ reason }) => handedOverTo(reason) ?? -1))
  const others = [...former].filter((lane) => lane >= known.length)
  lanes.push(...(await Promise.all(others.map((lane) => read(laneName(task, lane))))))
  return { rows, laneRows: lanes.flat().filter(({ state }) => state !== 'registered') }
}
