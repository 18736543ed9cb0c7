/** Why a lease ended against its holder's will. */
export type LossReason =
  /** The deadline passed: no renewal was confirmed in time. */
  | 'expired'
  /** The store answered that the lease is not ours any more: expired there, deleted, or taken by another. */
  | 'gone'
  /** An operator asked for the key back with `forceRelease`. */
  | 'revoked'
  /** The lease reached its maximum lifetime and is renewed no further. */
  | 'max-lifetime'
  /** The service that held it was closed. */
  | 'closed'
  /** Its own holder gave it back before: not a loss, but it is not held either. */
  | 'released'

/**
 * What is known of a store call that did not answer normally.
 *
 * - `no`: certainly not applied
 * - `unknown`: it may or may not have been applied; nobody may treat it as "not acquired"
 */
export type Applied = 'no' | 'unknown'

/** The stable `code` of each error class; programs branch on these, never on messages. */
export type LeaseholdErrorCode =
  | 'INVALID_OPTION'
  | 'LEASE_LOST'
  | 'STORE_UNAVAILABLE'
  | 'STORE_UNUSABLE'
  | 'DRIVER_FAULT'
  | 'DRIVER_MISSING'
  | 'FENCE_UNSAFE'
  | 'REENTRANT_ACQUIRE'
  | 'KEY_HELD'
  | 'CLOSED'
  | 'DUPLICATE_TASK'
  | 'UNKNOWN_TASK'
  | 'SCHEDULER_STATE'
  | 'RUN_STOPPED'
  | 'UNGUARDABLE'

/** The base of every error that Leasehold throws on its own account. */
export abstract class LeaseholdError extends Error {
  /** Stable, for programs. */
  abstract readonly code: LeaseholdErrorCode

  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
  }
}

/** An option, key or argument that cannot be used. Thrown before anything is sent to the store. */
export class InvalidOptionError extends LeaseholdError {
  readonly code = 'INVALID_OPTION' as const
  /** The option's name, as the caller wrote it. */
  readonly option: string

  constructor(option: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.option = option
  }
}

/**
 * @param requirement what the option must be, such as `a function`; answered by a function where the text shows a value
 * @throws InvalidOptionError unless it is fine
 */
export function requireOption(
  isFine: boolean,
  option: string,
  requirement: string | (() => string),
): asserts isFine {
  if (isFine) return
  const text = typeof requirement === 'string' ? requirement : requirement()
  throw new InvalidOptionError(option, `${option} must be ${text}.`)
}

/** @throws InvalidOptionError unless it is an integer of this range */
export function requireInteger(option: string, value: number, min: number, max: number): void {
  const isFine = Number.isInteger(value) && value >= min && value <= max
  requireOption(isFine, option, () => `an integer between ${grouped(min)} and ${grouped(max)}`)
}

function grouped(number: number): string {
  return number.toLocaleString('en')
}

/** What {@link LeaseLostError} tells besides its message. */
export interface LeaseLostDetails {
  readonly key: string
  readonly fence: number
  readonly reason: LossReason
  /** What the guarded function returned, when the loss was noticed only then (`onLost: 'reject'`). */
  readonly value?: unknown
}

const lossAdvice: Record<LossReason, string> = {
  expired:
    'no renewal was confirmed before its deadline. Stop the work; use a longer ttl if the event loop is often blocked',
  gone: 'the store no longer knows it. Stop the work; its writes are fenced out',
  revoked: 'an operator asked for the key back. Stop the work',
  'max-lifetime': 'it reached its maximum lifetime. Raise maxLifetime if the work may really take that long',
  released: 'it was released. Use it before that only',
  closed: 'its LockService was closed. Close the service after the work has ended',
}

/** The lease is no longer held. A loss is final. */
export class LeaseLostError extends LeaseholdError {
  readonly code = 'LEASE_LOST' as const
  readonly key: string
  readonly fence: number
  readonly reason: LossReason
  readonly value: unknown

  constructor(details: LeaseLostDetails, options?: ErrorOptions) {
    super(`The lease of ${quoted(details.key)} is not held: ${lossAdvice[details.reason]}.`, options)
    this.key = details.key
    this.fence = details.fence
    this.reason = details.reason
    this.value = details.value
  }
}

/** The store could not be asked, or its answer did not come: "could not find out", never "free" or "held". */
export class StoreUnavailableError extends LeaseholdError {
  readonly code = 'STORE_UNAVAILABLE' as const
  /** Whether the call can have been applied. */
  readonly applied: Applied

  constructor(message: string, applied: Applied, options?: ErrorOptions) {
    super(message, options)
    this.applied = applied
  }
}

/**
 * The store answers, but cannot serve: a table is missing or of another version, a right is missing,
 * a key holds a foreign type. Trying again does not help; the message says what does.
 */
export class StoreUnusableError extends LeaseholdError {
  readonly code = 'STORE_UNUSABLE' as const
}

/** How a driver's call failed, as far as the driver can tell. */
export type DriverFaultKind =
  /** Certainly not applied, and the same call may succeed at once: deadlock victim, serialization failure. */
  | 'retry'
  /** Certainly not applied: never sent, refused connection, pool exhausted. */
  | 'not-sent'
  /** Certainly not applied, because of one of the items: the caller may split the batch. */
  | 'bad-item'
  /** Certainly not applied, and no retry will help: schema, rights, configuration. */
  | 'unusable'
  /** Sent, and no telling whether it was applied. What any other rejection of a driver is taken for. */
  | 'unknown'

/** What a driver's call rejects with. Users see it as the `cause` of {@link StoreUnavailableError} and its siblings. */
export class DriverFault extends LeaseholdError {
  readonly code = 'DRIVER_FAULT' as const
  readonly kind: DriverFaultKind

  constructor(kind: DriverFaultKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

/** Nothing was applied, and trying again does not help. */
export function isFinal(fault: unknown): boolean {
  return fault instanceof DriverFault && (fault.kind === 'unusable' || fault.kind === 'bad-item')
}

/** No driver is configured, or the client library that it needs is not installed. */
export class DriverMissingError extends LeaseholdError {
  readonly code = 'DRIVER_MISSING' as const
}

/** The store issued a fence that is not a safe integer, or not greater than one seen before. The grant is given back. */
export class FenceUnsafeError extends LeaseholdError {
  readonly code = 'FENCE_UNSAFE' as const
  readonly key: string

  constructor(key: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.key = key
  }
}

/** The same call chain already holds this key: waiting for itself would never end. */
export class ReentrantAcquireError extends LeaseholdError {
  readonly code = 'REENTRANT_ACQUIRE' as const
  readonly key: string

  constructor(key: string) {
    super(
      `${quoted(key)} is already held by this call chain. Use currentLease() instead of acquiring it again, or another key.`,
    )
    this.key = key
  }
}

/**
 * Somebody else holds the key, where the caller asked for an exception instead of `null`: `@Exclusive` with
 * `onContention: 'throw'` or `'wait'`. Nothing ran.
 */
export class KeyHeldError extends LeaseholdError {
  readonly code = 'KEY_HELD' as const
  readonly key: string

  constructor(key: string) {
    super(`${quoted(key)} is held by somebody else: nothing ran. Try again later, or wait longer.`)
    this.key = key
  }
}

/** The service or scheduler was closed. */
export class ClosedError extends LeaseholdError {
  readonly code = 'CLOSED' as const
}

/** Two tasks were registered under one name. */
export class DuplicateTaskError extends LeaseholdError {
  readonly code = 'DUPLICATE_TASK' as const
  readonly task: string

  constructor(task: string) {
    super(
      `A task named ${quoted(task)} is already registered. Task names are shared by the whole fleet: give each its own.`,
    )
    this.task = task
  }
}

/** An operator named a task that the store does not know. */
export class UnknownTaskError extends LeaseholdError {
  readonly code = 'UNKNOWN_TASK' as const
  readonly task: string

  constructor(task: string) {
    super(
      `The store knows no task named ${quoted(task)} in this namespace. Check the name and the namespace; a task is known once a process that has it was started.`,
    )
    this.task = task
  }
}

/** A scheduler was started twice, or used in a state that does not allow the call. */
export class SchedulerStateError extends LeaseholdError {
  readonly code = 'SCHEDULER_STATE' as const
}

/** Why a run's signal was aborted although its lease is still held: stop requested, drain limit, timeout. */
export class RunStoppedError extends LeaseholdError {
  readonly code = 'RUN_STOPPED' as const
  readonly task: string
  readonly reason: string

  constructor(task: string, reason: string) {
    super(`The run of ${quoted(task)} was asked to stop: ${reason}.`)
    this.task = task
    this.reason = reason
  }
}

/**
 * Something of a framework's application would run in every process, or not at all, although it was to be guarded: its
 * scheduler is of an unknown make, or two jobs cannot be told apart by their names. Thrown at start-up.
 */
export class UnguardableError extends LeaseholdError {
  readonly code = 'UNGUARDABLE' as const
}

/** A name for messages: quoted, control characters escaped, cut to a readable length. */
export function quoted(name: string): string {
  const text = JSON.stringify(name)
  return text.length <= 120 ? text : `${text.slice(0, 100)}…" (${name.length} characters)`
}

/** What an error of any make says; never throws, whatever was thrown. */
export function messageOf(error: unknown): string {
  try {
    // A proxy may throw for any question, and a message may be anything.
    const message = error instanceof Error ? error.message : error
    if (typeof message === 'string') return message
  } catch {
    // As good as none.
  }
  return 'It was no Error.'
}
