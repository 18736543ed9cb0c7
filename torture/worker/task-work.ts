import { setTimeout as sleep } from 'node:timers/promises'
import { type LockService, type TaskOptions, type TaskRun, TaskScheduler } from 'leasehold'
import type { SeededRandom } from 'leasehold/testing'
import type { Journal } from '../history/journal.ts'
import { now } from '../history/records.ts'
import { editedPlan, editedTask, taskPlans } from '../task-plans.ts'
import type { WorkerOrders } from './messages.ts'
import type { ResourceClient } from './resource-client.ts'
import type { Witness } from './witness.ts'

export interface TaskWorkOptions {
  readonly locks: LockService
  readonly orders: WorkerOrders
  readonly random: SeededRandom
  readonly journal: Journal
  readonly witness: Witness
  readonly resource: ResourceClient
}

/** Runs the fleet's tasks; their handlers throw, dawdle, ignore their signal, and now and then never return. */
export class TaskWork {
  readonly #options: TaskWorkOptions
  readonly #scheduler: TaskScheduler
  #misbehavesUntil = 0

  constructor(options: TaskWorkOptions) {
    this.#options = options
    this.#scheduler = new TaskScheduler({ locks: options.locks, controlEvery: 500 })
    const plans = { ...taskPlans, [editedTask]: editedPlan(options.orders.edition) }
    for (const [name, plan] of Object.entries<TaskOptions>(plans)) {
      this.#scheduler.schedule(name, plan, (run) => this.#handle(run))
    }
  }

  /** For so long handlers throw, go on after a loss, or never return. */
  misbehave(ms: number): void {
    this.#misbehavesUntil = now() + ms
  }

  start(): Promise<void> {
    return this.#scheduler.start()
  }

  stop(): Promise<void> {
    return this.#scheduler.stop({ drain: 500 })
  }

  async #handle(run: TaskRun): Promise<void> {
    const { random, journal, witness, resource } = this.#options
    const of = `task:${run.task}`
    const name = { of, fence: run.fence, run: { slot: run.slot.getTime(), attempt: run.attempt } }
    witness.runBegun(of, run)
    const heard = (): void => {
      const { name: reason } = run.signal.reason as Error
      journal.write({
        is: reason === 'LeaseLostError' ? 'lost' : 'told-to-stop',
        of,
        fence: run.fence,
        reason,
      })
    }
    if (run.signal.aborted) heard()
    else run.signal.addEventListener('abort', heard)
    const value = await resource.read(of, run.fence)
    const ending = random.integer(now() < this.#misbehavesUntil ? 6 : 24)
    const workMs = random.pick([2, 5, 20, 100, 300, 1_500])
    const endsAt = performance.now() + workMs
    while (performance.now() < endsAt) {
      await sleep(Math.min(40, workMs))
      witness.looked(of, run)
      if (ending > 6 && run.signal.aborted) break
    }
    if (value !== null) await resource.write(of, run.fence, value + 1)
    if (ending === 0) await this.#neverReturn(of, run)
    journal.write({ is: 'let-go', ...name, outcome: ending === 1 ? 'threw' : 'done' })
    if (ending === 1) throw new Error('the handler throws')
  }

  async #neverReturn(of: string, run: TaskRun): Promise<void> {
    while (run.isHeld()) {
      await sleep(40)
      this.#options.witness.looked(of, run)
    }
    await new Promise(() => {})
  }
}
