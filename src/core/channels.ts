import { channel } from 'node:diagnostics_channel'
import { InvalidOptionError, type LossReason, quoted, requireOption } from './errors.ts'

interface KeyEvent {
  readonly namespace: string
  readonly key: string
}

interface TaskEvent {
  readonly namespace: string
  readonly task: string
}

interface RunEvent extends TaskEvent {
  /** The nominal instant of the slot, milliseconds since the epoch. */
  readonly slot: number
  readonly attempt: number
  readonly fence: number
}

/**
 * What the library tells over `node:diagnostics_channel`: one channel for each name. Nothing is computed for a channel
 * that nobody subscribed to. Never carries an ownership token.
 */
export interface LeaseholdEvents {
  /** An acquire ended. `waitedMs` from call to outcome. */
  'leasehold:acquire': KeyEvent & {
    readonly outcome: 'granted' | 'held' | 'failed' | 'cancelled'
    readonly waitedMs: number
    readonly fence?: number | undefined
    readonly error?: unknown
  }
  /** A lease was given back by its holder. */
  'leasehold:release': KeyEvent & {
    readonly fence: number
    readonly outcome: 'released' | 'already-lost' | 'unknown'
    readonly heldMs: number
  }
  /** A renewal was confirmed. */
  'leasehold:refresh': KeyEvent & { readonly fence: number; readonly remainingMs: number }
  /** A renewal failed; it is tried again until the deadline. */
  'leasehold:refresh-failed': KeyEvent & {
    readonly fence: number
    readonly attempt: number
    readonly remainingMs: number
    readonly error: unknown
  }
  /** A lease ended against its holder's will. Sent once for each. */
  'leasehold:lost': KeyEvent & {
    readonly fence: number
    readonly reason: LossReason
    readonly heldMs: number
  }
  /** A lease can be given no more time: it will end with its maximum lifetime, at most one ttl from now. */
  'leasehold:max-lifetime': KeyEvent & { readonly fence: number; readonly maxLifetimeMs: number }
  /** A push channel is deaf, or could not be had: waiters of this namespace poll until it is back. */
  'leasehold:deaf': { readonly namespace: string; readonly error: unknown }
  /** An operator took a key from its holder. */
  'leasehold:force-release': KeyEvent & { readonly fence: number; readonly outcome: string }
  /** This node learned how a slot was decided by its own claim or by another's. */
  'leasehold:slot': TaskEvent & {
    readonly slot: number
    readonly outcome: string
    readonly reason?: string | undefined
    /** With reason `lock`: who holds it, as text. */
    readonly error?: unknown
  }
  'leasehold:run-start': RunEvent & { readonly takeover: boolean; readonly latenessMs: number }
  'leasehold:run-end': RunEvent & {
    readonly outcome: 'succeeded' | 'failed' | 'abandoned' | 'skipped' | 'lost' | 'late' | 'unknown'
    readonly durationMs: number
    readonly error?: unknown
  }
  /** The fleet runs another schedule under this name: this node does not fire the task. */
  'leasehold:superseded': TaskEvent
  /** Something of the scheduler failed and will be tried again. */
  'leasehold:scheduler-error': {
    readonly namespace: string
    readonly task?: string | undefined
    readonly error: unknown
  }
}

export type LeaseholdEventName = keyof LeaseholdEvents

/** All of them. The value says nothing. */
const eventNames: Readonly<Record<LeaseholdEventName, true>> = {
  'leasehold:acquire': true,
  'leasehold:release': true,
  'leasehold:refresh': true,
  'leasehold:refresh-failed': true,
  'leasehold:lost': true,
  'leasehold:max-lifetime': true,
  'leasehold:deaf': true,
  'leasehold:force-release': true,
  'leasehold:slot': true,
  'leasehold:run-start': true,
  'leasehold:run-end': true,
  'leasehold:superseded': true,
  'leasehold:scheduler-error': true,
}

/** Publishes if anybody listens; the message is made only then. */
export function publish<Name extends LeaseholdEventName>(
  name: Name,
  message: () => LeaseholdEvents[Name],
): void {
  const target = channel(name)
  if (target.hasSubscribers) target.publish(message())
}

/**
 * Subscribes to one of the library's channels, with its message typed.
 *
 * @returns a function that unsubscribes
 * @throws InvalidOptionError for a name that none of them has, and for a listener that is no function
 */
export function onEvent<Name extends LeaseholdEventName>(
  name: Name,
  listener: (message: LeaseholdEvents[Name]) => void,
): () => void {
  if (typeof name !== 'string' || !Object.hasOwn(eventNames, name)) {
    const shown = typeof name === 'string' ? quoted(name) : typeof name
    throw new InvalidOptionError(
      'name',
      `There is no event ${shown}. There are: ${Object.keys(eventNames).join(', ')}.`,
    )
  }
  requireOption(typeof listener === 'function', 'listener', 'a function')
  const handler = (message: unknown): void => listener(message as LeaseholdEvents[Name])
  channel(name).subscribe(handler)
  return () => {
    channel(name).unsubscribe(handler)
  }
}
