import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Report, Way } from '../programs/second-by-second.ts'

export interface FleetOptions {
  /** Starts test/programs/second-by-second. */
  start(args: readonly string[]): ChildProcess
  readonly way: Way
  readonly url: string
  readonly namespace: string
  /** How late the timers of each process ring, in ms. */
  readonly lateMs: readonly number[]
  /** How many slots to look at. */
  readonly slots: number
}

/**
 * Fires a job each second in some processes, and counts how often each slot ran, in the order of the slots. Those before
 * all processes were there are not looked at.
 */
export async function runsPerSlot({
  start,
  way,
  url,
  namespace,
  lateMs,
  slots,
}: FleetOptions): Promise<number[]> {
  const fleet = lateMs.map((ms) => start([String(ms), way, url, namespace]))
  try {
    await Promise.all(fleet.map(isReady))
    const from = Math.floor(Date.now() / 1_000) * 1_000 + 2_000
    const runs = await count(fleet, from + slots * 1_000)
    return Array.from({ length: slots }, (_, index) => runs.get(from + index * 1_000) ?? 0)
  } finally {
    await Promise.all(fleet.map(end))
  }
}

function isReady(each: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    each.on('message', ({ event }: Report) => {
      if (event === 'ready') resolve()
    })
    each.once('exit', (code) => reject(new Error(`A process of the fleet ended at once: ${String(code)}`)))
  })
}

/** Until every process, or what runs in its stead, has come past an instant. */
function count(fleet: readonly ChildProcess[], until: number): Promise<ReadonlyMap<number, number>> {
  const runs = new Map<number, number>()
  return new Promise((resolve, reject) => {
    for (const each of fleet) {
      each.on('message', (report: Report) => {
        if (report.event !== 'ran') return
        runs.set(report.slot, (runs.get(report.slot) ?? 0) + 1)
        // The run of a slot after the last one, and one more for those who are late.
        if (report.slot > until) resolve(runs)
      })
      each.once('exit', (code) => reject(new Error(`A process of the fleet ended: ${String(code)}`)))
    }
  })
}

async function end(each: ChildProcess): Promise<void> {
  if (each.exitCode !== null) return
  const ended = once(each, 'exit')
  each.kill('SIGTERM')
  await ended
}
