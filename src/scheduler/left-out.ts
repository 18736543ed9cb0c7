/** What a handler of the scheduler's own returns when its slot is not run after all, or elsewhere. */
export class LeftOut {
  readonly reason: string
  readonly error: string | null

  constructor(reason: string, error: string | null = null) {
    this.reason = reason
    this.error = error
  }
}
