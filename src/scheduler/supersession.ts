import { publish } from '../core/channels.ts'
import type { Desk } from './desk.ts'

/** Whether the fleet runs another schedule under the name of a task, as far as this node has heard. */
export class Supersession {
  readonly #desk: Desk
  readonly #task: string
  #isSuperseded = false

  constructor(desk: Desk, task: string) {
    this.#desk = desk
    this.#task = task
  }

  get isSuperseded(): boolean {
    return this.#isSuperseded
  }

  /** Takes in an answer; tells when it is news. */
  learn({ outcome }: { readonly outcome: string }): void {
    const isSuperseded = outcome === 'superseded'
    if (isSuperseded && !this.#isSuperseded) {
      publish('leasehold:superseded', () => ({
        namespace: this.#desk.context.options.namespace,
        task: this.#task,
      }))
    }
    this.#isSuperseded = isSuperseded
  }
}
