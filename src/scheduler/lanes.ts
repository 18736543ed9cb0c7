import { createHash } from 'node:crypto'
import { parseHolder } from '../core/holder.ts'
import { askStore } from '../core/store-call.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import type { Attendee } from './attendance.ts'
import type { Desk } from './desk.ts'
import type { Draining } from './drain.ts'
import { externalSchedule } from './external-schedule.ts'
import { LeftOut } from './left-out.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/** Where one slot of a task with `overlap: 'allow'` runs. */
export interface Lane {
  readonly index: number
  readonly slot: number
}

/**
 * What came of offering a slot to a lane: it was granted now or before, somebody else runs there, the lane is beyond this
 * slot, or whoever offered it has lost the right to.
 */
export type Offered = 'begun' | 'busy' | 'passed' | 'given-up'

/** A record with a run of its own, beside that of the task. */
export interface LaneTask extends Attendee, Draining {
  readonly storedName: string
  readonly isAtRest: boolean
  begin(): void
  offer(slot: number, signal: AbortSignal): Promise<Offered>
  inspected(record: TaskRecord | null): void
  close(): void
}

/** What the store has of a task and its lanes, at one moment. */
export interface LanesSeen {
  readonly main: TaskRecord | null
  /** A lane where nothing runs; null if there is none. */
  readonly free: number | null
}

/**
 * The lanes of a task with `overlap: 'allow'`: records like those of tasks, each of which runs one slot at a time and can
 * crash and be retried by itself. The record of the task decides its slots, and hands them over, one after the other.
 *
 * A slot belongs to one lane for ever: the one that the claim which was granted it names, in the text about its holder. A
 * lane runs a slot once, since that moves the lane's mark. So neither a lost answer nor a node that dies half-way, nor a
 * claim that arrives a minute too late, runs a slot in two lanes.
 */
export class Lanes {
  readonly tasks: readonly LaneTask[]
  readonly #desk: Desk
  readonly #main: TaskDefinition

  constructor(desk: Desk, main: TaskDefinition, tasks: readonly LaneTask[]) {
    this.#desk = desk
    this.#main = main
    this.tasks = tasks
  }

  /** Looks at all records in one call, so that they are of one moment. Null if the store did not answer. */
  async look(): Promise<LanesSeen | null> {
    const { context } = this.#desk
    const names = [this.#main.storedName, ...this.tasks.map(({ storedName }) => storedName)]
    try {
      const [main = null, ...lanes] = await askStore(context, 'look at running tasks', (call) =>
        context.session.tasks.inspect(names, call),
      )
      for (const [index, task] of this.tasks.entries()) task.inspected(lanes[index] ?? null)
      const free = lanes.findIndex((record) => record === null || record.running === null)
      return { main, free: free === -1 ? null : free }
    } catch (error) {
      reportError(context, error, this.#main.name)
      return null
    }
  }

  /** Hands a slot over to its lane; the run of the task ends with what comes of it. @throws the signal's reason */
  async handOver(lane: Lane | null, slot: number, signal: AbortSignal): Promise<LeftOut> {
    const task = lane === null || lane.slot !== slot ? undefined : this.tasks[lane.index]
    if (task === undefined || lane === null) {
      return new LeftOut('lane', 'It cannot be told any more in which lane it was to run.')
    }
    const offered = await task.offer(slot, signal)
    if (offered === 'given-up') throw signal.reason as Error
    if (offered === 'begun') return new LeftOut(laneReason(lane.index))
    return offered === 'busy' ? new LeftOut('overlap') : new LeftOut('lane', 'Its lane is beyond this slot.')
  }
}

/** The record that hands slots over: under any policy it goes on where a node died, since nothing has run by then. */
export function mainDefinition(definition: TaskDefinition): TaskDefinition {
  return {
    ...definition,
    overlap: 'queue',
    onCrash: 'retry',
    maxAttempts: 1_000,
    lock: null,
    timeoutMs: null,
  }
}

export function laneDefinition(definition: TaskDefinition, index: number): TaskDefinition {
  const storedName = laneName(definition.storedName, index)
  const text = JSON.stringify({ name: definition.name.slice(0, 200), laneOf: definition.storedName })
  return {
    ...definition,
    storedName,
    schedule: { ...externalSchedule, fingerprint: 'lane' },
    overlap: 'queue',
    catchUp: 'none',
    jitterMs: 0,
    laneCount: 0,
    isLane: true,
    text,
  }
}

/** No stored form of a name begins like this: a hash under the reserved prefix is longer. */
export function laneName(storedName: string, index: number): string {
  const hash = createHash('sha256').update(storedName).digest('base64url')
  return `sha256:lane:${index}:${hash}`
}

const reason = /^lane:\d+$/

/** Why the row of a slot in the log of the task is not its run. */
export function isHandedOver(why: string | null): boolean {
  return why !== null && reason.test(why)
}

function laneReason(index: number): string {
  return `lane:${index}`
}

/** What the holder of a claim is labelled with. */
export function laneLabel({ index, slot }: Lane): string {
  return `lane ${index} of ${slot}`
}

/** Reads the lane back from the text about a run's holder. */
export function laneFrom(holder: string): Lane | null {
  const [, index, slot] = /^lane (\d+) of (\d+)$/.exec(parseHolder(holder).label ?? '') ?? []
  return index === undefined ? null : { index: Number(index), slot: Number(slot) }
}
