import { LeaseLostError } from '../src/core/errors.ts'
import type { Lease } from '../src/core/lease.ts'
import type { WorkerClock } from '../test/core/virtual-time.ts'
import type { History } from './history.ts'
import { clocksOf } from './network.ts'

/** What somebody trusts: a lease that was returned, or the run that a handler was given. */
export interface Belief {
  readonly key: string
  readonly token: string
  readonly fence: number
  readonly source: Pick<Lease, 'isHeld' | 'signal'>
  /** Its signal has been heard. */
  isTold: boolean
}

export interface BeliefsOptions {
  readonly history: History
  readonly by: string
  readonly clock: WorkerClock
  readonly timersLateMs: number
}

/** After the clocks of a process have jumped, a look at them within a second tells. */
const clockJumpSlackMs = 1_100

/** What one process believes to hold, and what it says when it is asked. */
export class Beliefs {
  readonly #options: BeliefsOptions
  readonly #beliefs = new Set<Belief>()
  /** Since its event loop stood still or its clocks jumped. */
  #awakeSince = -Infinity
  #jumpedAt = -Infinity

  constructor(options: BeliefsOptions) {
    this.#options = options
  }

  begin(key: string, token: string, fence: number, source: Belief['source']): Belief {
    const { history, by, clock } = this.#options
    const belief: Belief = { key, token, fence, source, isTold: false }
    const isHeld = source.isHeld()
    history.add({ kind: 'belief', by, key, token, fence, clocks: clocksOf(clock), isHeld })
    const onAbort = (): void => {
      belief.isTold = true
      const { reason } = source.signal as { reason: unknown }
      // By its name: with a planted bug the class may be of another loading of the module.
      if (!(reason instanceof Error) || reason.name !== LeaseLostError.name) return
      const why = 'reason' in reason ? String(reason.reason) : reason.message
      history.add({ kind: 'loss', by, key, token, fence, reason: why, ...this.#wakefulness() })
    }
    if (source.signal.aborted) onAbort()
    else source.signal.addEventListener('abort', onAbort)
    this.#beliefs.add(belief)
    return belief
  }

  end(belief: Belief): void {
    const { key, token, fence } = belief
    this.#beliefs.delete(belief)
    this.#options.history.add({ kind: 'end', by: this.#options.by, key, token, fence })
  }

  /** The process is dead: it believes nothing any more. */
  clear(): void {
    this.#beliefs.clear()
  }

  wentOn({ withClockJump }: { readonly withClockJump: boolean }): void {
    this.#awakeSince = this.#options.clock.monotonic()
    if (withClockJump) this.#jumpedAt = this.#awakeSince
  }

  /** Asks those who believe to hold a key what they say now. */
  sample(key: string, exceptToken: string): void {
    for (const belief of this.#beliefs)
      if (belief.key === key && belief.token !== exceptToken) this.#sample(belief)
  }

  sampleAll(): void {
    for (const belief of this.#beliefs) this.#sample(belief)
  }

  #sample({ key, token, fence, source, isTold }: Belief): void {
    const { history, by } = this.#options
    // The signal first: asking whether it is held lets it find out.
    const isAborted = source.signal.aborted
    const isHeld = source.isHeld()
    history.add({ kind: 'sample', by, key, token, fence, isTold, isAborted, isHeld, ...this.#wakefulness() })
  }

  #wakefulness() {
    const { clock, timersLateMs } = this.#options
    const clocks = clocksOf(clock)
    const hasJumped = clocks.monotonic - this.#jumpedAt <= clockJumpSlackMs + timersLateMs
    return {
      clocks,
      awakeForMs: clock.frozen ? -1 : clocks.monotonic - this.#awakeSince,
      slackMs: (hasJumped ? clockJumpSlackMs : 0) + timersLateMs * clock.rate,
    }
  }
}
