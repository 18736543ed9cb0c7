import { createHash } from 'node:crypto'
import { parseHolder } from '../core/holder.ts'
import { askStore } from '../core/store-call.ts'
import type { RunningSlot, TaskRecord } from '../driver/task-driver.ts'
import type { Attendee } from './attendance.ts'
import type { Desk } from './desk.ts'
import type { Draining } from './drain.ts'
import { externalSchedule } from './external-schedule.ts'
import { LeftOut } from './left-out.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/** Where a run of a task with `overlap: 'allow'` takes place: its slot in a lane, or a manual run in the task's own record. */
export interface Place {
  readonly lane: number | null
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
  /** A lane where nothing runs, of those that the store knows; null if there is none. */
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
  /** The task as its user defined it: what manual runs go by. */
  readonly definition: TaskDefinition
  readonly #desk: Desk

  constructor(desk: Desk, definition: TaskDefinition, tasks: readonly LaneTask[]) {
    this.#desk = desk
    this.definition = definition
    this.tasks = tasks
  }

  /** Looks at all records: in one call, unless the store takes fewer at a time. Null if there was no answer to go by. */
  async look(): Promise<LanesSeen | null> {
    const { context } = this.#desk
    const { storedName, name } = this.definition
    try {
      const records = await this.#inspect([...this.tasks.map((task) => task.storedName), storedName])
      const main = records.pop() ?? null
      for (const [index, task] of this.tasks.entries()) task.inspected(records[index] ?? null)
      const free = records.findIndex((record) => record !== null && record.running === null)
      if (free !== -1) return { main, free }
      // A claim in a lane that the store does not know, or has forgotten, would find its slot decided.
      const unknown = this.tasks.filter((_, index) => records[index] === null)
      if (unknown.length === 0 || main === null) return { main, free: null }
      await Promise.all(unknown.map((task) => task.register()))
      return null
    } catch (error) {
      reportError(context, error, name)
      return null
    }
  }

  /** What a claim that came late took over was not what it had been made for: the first attempt tells the lane. */
  async #laneOf(slot: number, signal: AbortSignal): Promise<number | null> {
    const { context, outage } = this.#desk
    const { storedName: task, name } = this.definition
    while (!signal.aborted) {
      try {
        const rows = await askStore(context, 'look up the lane of a slot', (call) =>
          context.session.tasks.log({ task, from: slot, to: slot + 1, limit: 1_000 }, call),
        )
        const places = rows.map(({ holder }) => placeOf({ slot, holder: holder ?? '' }))
        return places.find((place) => place.lane !== null && place.slot === slot)?.lane ?? null
      } catch (error) {
        reportError(context, error, name)
        await outage.wait()
      }
    }
    throw signal.reason as Error
  }

  /** The task's own record must be the last: what it says then held while the lanes were looked at. */
  async #inspect(names: readonly string[]): Promise<(TaskRecord | null)[]> {
    const { context } = this.#desk
    const { maxBatch } = context.options.driver.abilities
    const records: (TaskRecord | null)[] = []
    for (let first = 0; first < names.length; first += maxBatch) {
      const part = names.slice(first, first + maxBatch)
      const answer = await askStore(context, 'look at running tasks', (call) =>
        context.session.tasks.inspect(part, call),
      )
      records.push(...part.map((_, index) => answer[index] ?? null))
    }
    return records
  }

  /** Hands a slot over to its lane; the run of the task ends with what comes of it. @throws the signal's reason */
  async handOver(place: Place, signal: AbortSignal): Promise<LeftOut> {
    const { slot } = place
    const lane = place.lane ?? (await this.#laneOf(slot, signal))
    const task = lane === null ? undefined : this.tasks[lane]
    if (task === undefined || lane === null) {
      return new LeftOut('lane', 'It cannot be told any more in which lane it was to run.')
    }
    const offered = await task.offer(slot, signal)
    if (offered === 'given-up') throw signal.reason as Error
    if (offered === 'begun') return new LeftOut(laneReason(lane))
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

const reason = /^lane:(\d{1,2})$/

/** The lane that a slot was handed over to, by the reason in its row; null for any other reason. */
export function handedOverTo(why: string | null): number | null {
  const [, index] = reason.exec(why ?? '') ?? []
  return index === undefined ? null : Number(index)
}

function laneReason(index: number): string {
  return `lane:${index}`
}

/** What the holder of a claim is labelled with; null for one outside the lanes. */
export function laneLabel({ lane, slot }: Place): string | null {
  return lane === null ? null : `lane ${lane} of ${slot}`
}

/** Reads it back from the text about a run's holder. */
export function placeOf({ holder, slot }: Pick<RunningSlot, 'holder' | 'slot'>): Place {
  const [, lane, of] = /^lane (\d+) of (\d+)$/.exec(parseHolder(holder).label ?? '') ?? []
  return lane === undefined ? { lane: null, slot } : { lane: Number(lane), slot: Number(of) }
}
