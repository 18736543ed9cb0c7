import { expect } from 'vitest'
import type { ClaimRequest, CompleteRequest, RunRecord } from 'leasehold/driver'

/*
 * What the record of a task should hold, as a map of task to mark, run and log. Written from the design, and from none of
 * the code that keeps it.
 */

export interface ModelRun {
  readonly task: string
  readonly slot: number
  readonly attempt: number
  readonly token: string
  readonly fence: number
  hasLapsed: boolean
  isToStop: boolean
}

export interface ModelTask {
  mark: number
  fingerprint: string
  readonly former: Set<string>
  isPaused: boolean
  run: ModelRun | null
}

/** One row of the log: what became of an attempt at a slot. */
interface Row {
  readonly slot: number
  readonly attempt: number
  readonly fence: number | null
  state: RunRecord['state']
  late: string | null
}

export type Claimed = 'granted' | 'takeover' | 'skipped' | 'held' | 'decided' | 'behind' | 'early'

export class TaskModel {
  readonly tasks = new Map<string, ModelTask>()
  /** Every run that was ever granted. */
  readonly runs: ModelRun[] = []
  version = 0
  readonly requests = new Set<string>()
  readonly #rows = new Map<string, Row[]>()
  readonly #fences = new Map<string, number>()

  rows(task: string): readonly Row[] {
    return this.#rows.get(task) ?? []
  }

  /** @param now as the store answers it */
  register(name: string, fingerprint: string, starting: boolean, now: number): string {
    const task = this.tasks.get(name)
    if (task === undefined) {
      this.create(name, fingerprint, now)
      return 'created'
    }
    if (task.fingerprint === fingerprint) return 'current'
    if (!starting || task.former.has(fingerprint)) return 'superseded'
    task.former.add(task.fingerprint)
    task.fingerprint = fingerprint
    this.version++
    if (now > task.mark) this.#log(name, { slot: now, state: 'missed' })
    task.mark = Math.max(task.mark, now)
    return 'raised'
  }

  create(name: string, fingerprint: string, now: number): void {
    this.tasks.set(name, { mark: now, fingerprint, former: new Set(), isPaused: false, run: null })
    this.#log(name, { slot: now, state: 'registered' })
  }

  /** What comes of a claim under the schedule of the record, of a slot that is due unless it is early. */
  claim(request: ClaimRequest, isEarly: boolean): Claimed {
    const task = this.tasks.get(request.task) as ModelTask
    const { run, mark, isPaused } = task
    const { slot, after, token, onCrash, maxAttempts, overlap, decide } = request
    if (run?.token === token && !run.hasLapsed) return run.attempt > 1 ? 'takeover' : 'granted'
    if (run?.hasLapsed === true && run.token !== token) {
      const isToRetry = onCrash === 'retry' && run.attempt < maxAttempts && !run.isToStop
      if (isToRetry && !isPaused) return 'takeover'
      if (!isToRetry) this.#lose(task)
    }
    if (isEarly) return 'early'
    if (slot <= mark) return 'decided'
    if (after !== mark) return 'behind'
    const state = isPaused ? 'skipped' : decide === 'miss' ? 'missed' : null
    if (state === null && task.run === null) return 'granted'
    if (state === null && (overlap === 'queue' || task.run?.hasLapsed === true)) return 'held'
    task.mark = slot
    this.#log(request.task, { slot, state: state ?? 'skipped' })
    return 'skipped'
  }

  /** A claim was granted: a slot for the first time, or the next attempt at the one that had lapsed. */
  begin(run: ModelRun): void {
    const task = this.tasks.get(run.task) as ModelTask
    const lapsed = task.run
    if (lapsed !== null) {
      expect([run.slot, run.attempt]).toEqual([lapsed.slot, lapsed.attempt + 1])
      this.#lose(task)
    } else {
      expect(run.attempt).toBe(1)
      expect(run.slot).toBeGreaterThan(task.mark)
      task.mark = run.slot
    }
    expect(run.fence, 'the fence').toBeGreaterThan(this.#fences.get(run.task) ?? 0)
    this.#fences.set(run.task, run.fence)
    this.#log(run.task, { slot: run.slot, attempt: run.attempt, fence: run.fence, state: 'running' })
    task.run = run
    this.runs.push(run)
  }

  complete({ task: name, slot, attempt, fence, outcome }: CompleteRequest): 'completed' | 'late' {
    const task = this.tasks.get(name)
    const row = this.rows(name).find(
      (one) => one.slot === slot && one.attempt === attempt && one.fence === fence,
    )
    if (task?.run?.fence === fence) {
      task.run = null
      if (row !== undefined) row.state = outcome
      return 'completed'
    }
    if (row === undefined) return 'late'
    if (row.state !== 'lost' && row.state !== 'running') return 'completed'
    row.late = outcome
    return 'late'
  }

  isUnderWay(run: ModelRun): boolean {
    return this.tasks.get(run.task)?.run === run && !run.hasLapsed
  }

  #lose(task: ModelTask): void {
    const { run } = task
    if (run === null) return
    const row = this.rows(run.task).find(({ fence }) => fence === run.fence)
    if (row !== undefined) row.state = 'lost'
    task.run = null
  }

  #log(task: string, row: Partial<Row> & Pick<Row, 'slot' | 'state'>): void {
    const rows = this.#rows.get(task) ?? []
    expect(
      rows.filter(({ slot, attempt }) => slot === row.slot && attempt === (row.attempt ?? 0)),
      'a slot is decided once',
    ).toEqual([])
    this.#rows.set(task, [...rows, { attempt: 0, fence: null, late: null, ...row }])
  }
}
