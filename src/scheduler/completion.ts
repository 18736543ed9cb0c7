import type { CompleteRequest } from '../driver/task-driver.ts'
import { Backoff } from './backoff.ts'
import type { Desk } from './desk.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/**
 * What became of recording an outcome: `late` if the run had been fenced out, `unknown` if it was given up before the
 * store answered.
 */
export type Recorded = 'completed' | 'late' | 'unknown'

/** Records the outcome of a run: asks until the store answers, since a completed run must never be taken for a lost one. */
export class Completion {
  readonly #desk: Desk
  readonly #task: TaskDefinition
  /** The pause after this one item was refused, which says nothing about the store. */
  readonly #refusal: Backoff
  #isGivenUp = false

  constructor(desk: Desk, task: TaskDefinition) {
    this.#desk = desk
    this.#task = task
    const { clock, random } = desk.context.options
    this.#refusal = new Backoff({ clock, random, shortestMs: 100, longestMs: 5_000 })
  }

  /** Asks once more at most. */
  giveUp(): void {
    this.#isGivenUp = true
    this.#refusal.end()
  }

  async record(request: CompleteRequest): Promise<Recorded> {
    const { context, outage, verbs, storeTime } = this.#desk
    const timeoutMs = this.#task.lease.requestTimeoutMs
    let attempt = 1
    let lockedRows: 'skip' | 'wait' = 'skip'
    do {
      const sent = await verbs.completes.submit(request, { timeoutMs, attempt, lockedRows })
      if (sent.kind === 'failed') {
        attempt = 2
        reportError(context, sent.fault, this.#task.name)
        await outage.wait()
        continue
      }
      outage.reset()
      const { answer } = sent
      if (answer.outcome === 'completed' || answer.outcome === 'late') {
        storeTime.note(sent.sentAt, answer.now)
        return answer.outcome
      }
      if (answer.outcome === 'failed') reportError(context, answer.error, this.#task.name)
      if (answer.outcome === 'failed' || lockedRows === 'wait') await this.#refusal.wait()
      lockedRows = 'wait'
    } while (!this.#isGivenUp && !outage.isOver)
    return 'unknown'
  }
}
