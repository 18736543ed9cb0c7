import { readFileSync } from 'node:fs'
import { connect, type RunHistoryEntry, TaskScheduler } from 'leasehold'
import { cron, type JournalLine, taskName } from './messages.ts'

export interface Summary {
  /** Slots that were due from the first decided one to the end. */
  readonly slots: number
  /** Slots whose work was finished. */
  readonly runs: number
  /** Slots that the store says were skipped, with a reason. */
  readonly skipped: number
  /** Slots that were finished twice, or begun twice under one attempt. */
  readonly duplicates: number
  /** Slots that neither ran nor were skipped. */
  readonly missed: number
  /** Of the missed ones, those of which the store cannot say why. */
  readonly withoutReason: number
  readonly takeovers: number
  /** How often the unprotected cron ran in these slots. */
  readonly unprotectedRuns: number
}

/** Compares what the pods wrote down themselves with what the store says, slot by slot. */
export async function summarize(
  url: string,
  namespace: string,
  journal: string,
  range: { readonly from: number; readonly to: number },
): Promise<Summary> {
  const lines = readFileSync(journal, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JournalLine)
  const history = await readHistory(url, namespace)
  const count = {
    slots: 0,
    runs: 0,
    skipped: 0,
    duplicates: 0,
    missed: 0,
    withoutReason: 0,
    takeovers: 0,
    unprotectedRuns: 0,
  }
  for (let slot = range.from; slot <= range.to; slot += 1_000) {
    const evidence = lines.filter((line) => line.slot === slot)
    const started = evidence.filter(({ what }) => what === 'started').map(({ attempt }) => attempt)
    const finished = evidence.filter(({ what }) => what === 'finished').length
    const entries = history.filter((entry) => entry.slot.getTime() === slot)
    count.slots++
    count.unprotectedRuns += evidence.filter(({ what }) => what === 'unprotected').length
    count.takeovers += started.filter((attempt) => attempt > 1).length
    if (finished > 1 || new Set(started).size < started.length) count.duplicates++
    if (finished > 0) count.runs++
    else if (entries.some(({ state }) => state === 'skipped')) count.skipped++
    else {
      count.missed++
      if (!entries.some(({ state, reason }) => reason !== null || state === 'lost')) count.withoutReason++
    }
  }
  return count
}

async function readHistory(url: string, namespace: string): Promise<readonly RunHistoryEntry[]> {
  await using locks = await connect(url, { namespace })
  const tasks = new TaskScheduler({ locks })
  tasks.schedule(taskName, { cron }, () => {})
  return await tasks.history(taskName, { limit: 10_000 })
}
