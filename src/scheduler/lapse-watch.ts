import { Alarm } from '../core/alarm.ts'
import { StoreUnusableError } from '../core/errors.ts'
import type { ServiceContext } from '../core/service-context.ts'
import { askStore } from '../core/store-call.ts'
import type { TaskRecord } from '../driver/task-driver.ts'
import type { Backoff } from './backoff.ts'
import { reportError } from './report-error.ts'

/** A task that runs elsewhere, as far as this node knows. */
export interface LapseWatched {
  readonly storedName: string
  /** When the lease of its run would lapse if nobody renewed it, on the monotonic clock; `Infinity` for never. */
  readonly lapsesAt: number
  /** What the store says now; null if it does not know the task. Sets {@link lapsesAt} anew. Never throws. */
  inspected(record: TaskRecord | null): void
}

/**
 * Looks after runs of other nodes: when the lease of one would have lapsed, asks the store whether it has. One timer and
 * one question for all of them.
 */
export class LapseWatch {
  readonly #context: ServiceContext
  readonly #outage: Backoff
  readonly #watched = new Set<LapseWatched>()
  readonly #alarm: Alarm
  #isOpen = true

  constructor(context: ServiceContext, outage: Backoff) {
    this.#context = context
    this.#outage = outage
    this.#alarm = new Alarm(context.options.clock, () => void this.#look())
  }

  /** Adds a task, or looks again at one whose time has changed. */
  watch(task: LapseWatched): void {
    if (!this.#isOpen) return
    if (task.lapsesAt === Infinity) {
      this.#watched.delete(task)
      return
    }
    this.#watched.add(task)
    this.#alarm.setFor(task.lapsesAt)
  }

  close(): void {
    this.#isOpen = false
    this.#watched.clear()
    this.#alarm.off()
  }

  async #look(): Promise<void> {
    const { clock, driver } = this.#context.options
    const now = clock.monotonic()
    const due = [...this.#watched].filter(({ lapsesAt }) => lapsesAt <= now)
    // Those asked about are out until the answer puts them back.
    for (const task of due) this.#watched.delete(task)
    for (const { lapsesAt } of this.#watched) this.#alarm.setFor(lapsesAt)
    const { maxBatch } = driver.abilities
    const parts = Array.from({ length: Math.ceil(due.length / maxBatch) }, (_, part) =>
      due.slice(part * maxBatch, (part + 1) * maxBatch),
    )
    await Promise.all(parts.map((part) => this.#inspect(part)))
  }

  async #inspect(tasks: readonly LapseWatched[]): Promise<void> {
    const names = tasks.map(({ storedName }) => storedName)
    try {
      const records = await askStore(this.#context, 'look at running tasks', (call) =>
        this.#context.session.tasks.inspect(names, call),
      )
      this.#outage.reset()
      for (const [index, task] of tasks.entries()) {
        if (this.#isOpen) task.inspected(records[index] ?? null)
      }
    } catch (error) {
      // One record that cannot be read must not hide the runs of the others.
      if (error instanceof StoreUnusableError && tasks.length > 1) {
        await Promise.all(tasks.map((task) => this.#inspect([task])))
        return
      }
      reportError(this.#context, error)
      await this.#outage.wait()
      for (const task of tasks) this.watch(task)
    }
  }
}
