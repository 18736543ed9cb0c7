import type { ReleaseAnswer } from '../driver/lock-driver.ts'
import type { Answered } from './batcher.ts'
import { sleep, type Timer } from './clock.ts'
import { isFinal } from './errors.ts'
import type { ServiceContext } from './service-context.ts'

/**
 * What became of a release.
 *
 * - `released`: the key is free
 * - `already-lost`: the lease had ended before; a successor, if there is one, is untouched
 * - `unknown`: the store did not answer in time; the key is free one ttl later at most
 */
export type ReleaseOutcome = 'released' | 'already-lost' | 'unknown'

/**
 * Releases a key held under a token. Settles within the timeout; never throws. Sends nothing once the service is closed.
 *
 * A call that was given up while it was in the air may not have reached the store, or have found the record locked: when
 * it has ended, the key is released again in the background, so that it does not stay closed for a ttl.
 */
export function giveBack(
  context: ServiceContext,
  key: string,
  token: string,
  timeoutMs: number = context.options.requestTimeoutMs,
): Promise<ReleaseOutcome> {
  if (context.isClosed) return Promise.resolve('unknown')
  const release = releaseWithin(context, key, token, timeoutMs)
  void release.then(async ({ inAir = [] }) => {
    if (inAir.length === 0) return
    const first = await Promise.race(inAir)
    if (context.pending.isWindingUp || outcomeOf(first?.answer) !== null) return
    void giveBack(context, key, token, timeoutMs)
  })
  return context.pending.track(release.then(({ outcome }) => outcome))
}

interface Release {
  readonly outcome: ReleaseOutcome
  /** The calls that were still in the air when the time was over. */
  readonly inAir?: readonly InAir[]
}

type InAir = Promise<Answered<ReleaseAnswer> | null>

async function releaseWithin(
  context: ServiceContext,
  key: string,
  token: string,
  timeoutMs: number,
): Promise<Release> {
  const { clock } = context.options
  const giveUpAt = clock.monotonic() + timeoutMs
  const inAir = new Set<InAir>()
  let busy = 0
  for (let attempt = 1; ; attempt++) {
    const leftMs = Math.ceil(giveUpAt - clock.monotonic())
    if (leftMs <= 0) return { outcome: 'unknown', inAir: [...inAir] }
    const lockedRows = busy === 0 ? 'skip' : 'wait'
    // The first one leaves time for another, which may go over another connection.
    const tryMs = attempt === 1 ? Math.ceil(leftMs / 2) : leftMs
    const sent = await context.releases.submit({ key, token }, { timeoutMs: tryMs, attempt, lockedRows })
    if (sent.kind === 'answered') {
      const { answer } = sent
      const outcome = outcomeOf(answer)
      if (outcome !== null) return { outcome }
      if (answer.outcome === 'busy' && ++busy === 1) continue
      if (answer.outcome === 'failed' && isFinal(answer.error)) return { outcome: 'unknown' }
    } else if (isFinal(sent.fault)) {
      return { outcome: 'unknown' }
    } else if (sent.fault.kind === 'unknown') {
      const { settled } = sent
      inAir.add(settled)
      void settled.then(() => inAir.delete(settled))
    }
    await sleep(clock, Math.min(200, 10 * 2 ** attempt, Math.max(0, giveUpAt - clock.monotonic())))
  }
}

function outcomeOf(answer: ReleaseAnswer | undefined): ReleaseOutcome | null {
  if (answer?.outcome === 'released') return 'released'
  return answer?.outcome === 'lost' ? 'already-lost' : null
}

/**
 * Cleans up after acquires whose answer never came. Such a call may still be applied at any later time and would then
 * hold the key for nobody. So its token is released at once, again when the call has settled, and once more a request
 * timeout after that: a client library may have sent it a second time over a new connection.
 */
export class Abandonments {
  readonly #context: ServiceContext
  readonly #timers = new Set<Timer>()
  #closed = false

  constructor(context: ServiceContext) {
    this.#context = context
  }

  /** @param unsettled the calls under this token that had not ended yet when they were given up */
  abandon(key: string, token: string, unsettled: readonly Promise<unknown>[]): void {
    this.#release(key, token)
    this.followUp(key, token, unsettled)
  }

  /** The same without releasing at once: for a token whose lease was just given back. */
  followUp(key: string, token: string, unsettled: readonly Promise<unknown>[]): void {
    for (const settled of unsettled) {
      void settled.then(() => {
        this.#release(key, token)
        this.#later(() => this.#release(key, token))
      })
    }
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
  }

  #release(key: string, token: string): void {
    if (!this.#closed) void giveBack(this.#context, key, token)
  }

  #later(callback: () => void): void {
    if (this.#closed) return
    const { clock, requestTimeoutMs } = this.#context.options
    const timer: Timer = clock.setTimer(requestTimeoutMs, () => {
      this.#timers.delete(timer)
      callback()
    })
    this.#timers.add(timer)
  }
}
