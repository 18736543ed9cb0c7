import { DriverFault } from '../core/errors.ts'
import type { RegisterAnswer } from '../driver/task-driver.ts'
import { attendMs } from './attendance.ts'
import type { Desk } from './desk.ts'
import { itemFault } from './item-fault.ts'
import { reportError } from './report-error.ts'
import type { TaskDefinition } from './task-options.ts'

/** An answer that tells of the task. */
export type Registered = Exclude<RegisterAnswer, { outcome: 'busy' | 'failed' }>

/** Tells the store of one task of this node, each time that it is called. */
export class Registration {
  readonly #desk: Desk
  readonly #task: TaskDefinition
  #isKnown = false
  #attempt = 1

  constructor(desk: Desk, task: TaskDefinition) {
    this.#desk = desk
    this.#task = task
  }

  /** @param since see `RegisterRequest.since` */
  async tell(since: number | null): Promise<Registered | DriverFault> {
    const { context, verbs, storeTime } = this.#desk
    const { storedName, schedule, text, lease, name } = this.#task
    const { fingerprint } = schedule
    const sent = await verbs.registers.submit(
      { task: storedName, fingerprint, definition: text, starting: !this.#isKnown, attendMs, since },
      { timeoutMs: lease.requestTimeoutMs, attempt: this.#attempt, lockedRows: 'wait' },
    )
    this.#attempt = sent.kind === 'failed' ? 2 : 1
    const answer = sent.kind === 'failed' ? sent.fault : stateOrFault(sent.answer)
    if (sent.kind === 'failed' || answer instanceof DriverFault) {
      reportError(context, answer, name)
      return answer
    }
    this.#isKnown = true
    storeTime.note(sent.sentAt, answer.now)
    return answer
  }
}

function stateOrFault(answer: RegisterAnswer): Registered | DriverFault {
  if (answer.outcome === 'busy') return new DriverFault('retry', 'The record is locked by another statement.')
  if (answer.outcome !== 'failed') return answer
  return itemFault(answer.error)
}
