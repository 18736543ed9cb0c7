import type { CallOptions } from '../driver/driver.ts'
import { sleep } from './clock.ts'
import { DriverFault, isFinal, messageOf, StoreUnavailableError, StoreUnusableError } from './errors.ts'
import type { ServiceContext } from './service-context.ts'
import { withinTime } from './within-time.ts'

/**
 * Makes one unbatched call of a driver within the request timeout, again where nothing was applied and trying again
 * helps.
 *
 * @param what completes the sentence "Could not …", for the error
 * @throws StoreUnavailableError, StoreUnusableError
 */
export function askStore<Answer>(
  context: ServiceContext,
  what: string,
  send: (call: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  return context.pending.track(askWithinTime(context, what, send))
}

async function askWithinTime<Answer>(
  context: ServiceContext,
  what: string,
  send: (call: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  const { clock, random, requestTimeoutMs } = context.options
  const giveUpAt = clock.monotonic() + requestTimeoutMs
  for (let tries = 1; ; tries++) {
    try {
      return await withinTime(clock, giveUpAt - clock.monotonic(), send({ attempt: 1, lockedRows: 'wait' }))
    } catch (error) {
      const pauseMs = Math.min(50, 2 ** tries) * random()
      const again = error instanceof DriverFault && error.kind === 'retry'
      if (!again || clock.monotonic() + pauseMs >= giveUpAt) throw storeError(what, error)
      await sleep(clock, pauseMs)
    }
  }
}

/** What users get to see of a failed call. */
export function storeError(what: string, cause: unknown): StoreUnavailableError | StoreUnusableError {
  const reason = messageOf(cause)
  const kind = cause instanceof DriverFault ? cause.kind : 'unknown'
  if (isFinal(cause)) return new StoreUnusableError(`Could not ${what}: ${reason}`, { cause })
  return new StoreUnavailableError(
    `Could not ${what}: ${reason} Check that the store is up and reachable, or raise requestTimeout.`,
    kind === 'unknown' ? 'unknown' : 'no',
    { cause },
  )
}
