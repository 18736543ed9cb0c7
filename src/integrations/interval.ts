import {
  type Duration,
  type FiredRun,
  InvalidOptionError,
  type ScheduledTaskStore,
  systemClock,
  type Timer,
} from '../index.ts'
import { GuardedJob, type GuardOptions } from './guarded-fire.ts'

export interface EverySlotOptions extends GuardOptions {
  /** Whether the timer keeps the process alive, as that of `setInterval` does. Default true. */
  readonly keepAlive?: boolean | undefined
  /** Called with what the function throws or rejects with. Default: nobody handles the rejection, as of `setInterval`. */
  readonly onError?: ((error: unknown) => void) | undefined
}

/** What `everySlot` returns instead of a handle for `clearInterval`. */
export interface SlotTimer {
  /** Fires no more. What runs goes on; `store.stop()` waits for it. */
  stop(): void
  [Symbol.dispose](): void
}

/** Steps of the wall clock are noticed within this. */
const longestSleepMs = 60_000

/**
 * `setInterval` for a fleet: fires at the multiples of the interval since 1970, which all processes agree on whenever they
 * were started, and each of them runs in one process. No drift: each timer is set for its instant.
 *
 * @param every 100 ms to 365 days
 * @throws InvalidOptionError
 * @example
 * const timer = everySlot(store, 'poll-inbox', '30s', pollInbox) // was: setInterval(pollInbox, 30_000)
 */
export function everySlot(
  store: ScheduledTaskStore,
  name: string,
  every: Duration,
  fn: (run: FiredRun) => unknown,
  options: EverySlotOptions = {},
): SlotTimer {
  const { keepAlive = true, onError, ...guardOptions } = options
  if (typeof keepAlive !== 'boolean') {
    throw new InvalidOptionError('keepAlive', 'keepAlive must be true or false.')
  }
  if (typeof fn !== 'function') throw new InvalidOptionError('fn', 'fn must be a function.')
  const job = new GuardedJob(store, name, guardOptions)
  let timer: Timer | undefined
  let slot = store.nextSlot({ every }).getTime()

  const arm = (): void => {
    const inMs = Math.min(Math.max(0, slot - systemClock.wall()), longestSleepMs)
    timer = systemClock.setTimer(inMs, ring, { keepAlive })
  }
  const ring = (): void => {
    const wall = systemClock.wall()
    // It may ring a fraction of a millisecond early.
    if (wall >= slot - 1) {
      const fired = job.fire({ every }, fn)
      if (onError !== undefined) fired.catch(onError)
      slot = store.nextSlot({ every }, Math.max(wall, slot)).getTime()
    }
    arm()
  }
  arm()
  const stop = (): void => timer?.cancel()
  return { stop, [Symbol.dispose]: stop }
}
