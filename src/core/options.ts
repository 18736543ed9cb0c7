import type { Driver } from '../driver/driver.ts'
import { type Clock, systemClock } from './clock.ts'
import { type Duration, type DurationRange, formatDuration, parseDuration, shown, year } from './duration.ts'
import { safetyMargin } from './deadline.ts'
import { DriverMissingError, requireOption } from './errors.ts'
import { holds, readOptions } from './read-options.ts'
import { toStoredKey } from './stored-key.ts'

/** What one acquisition can be told; a `LockService` takes the same names as its defaults. */
export interface LeaseOptions {
  /**
   * How long the lease lasts without renewal, on the store's clock. Shorter frees a crashed holder's key sooner; longer
   * bears longer pauses of the process and outages of the store. Default `'30s'`, at least 100 ms, at most 365 days.
   */
  readonly ttl?: Duration | undefined
  /**
   * Renewal while the lease is held: `true` renews at a third of the ttl, an interval at that interval (less than the
   * ttl), `false` never, so that the lease ends after one ttl. Default `true`.
   */
  readonly heartbeat?: boolean | Duration | undefined
  /**
   * Hard cap on the lease however healthy its heartbeat, against work that never ends. At least the ttl, at most 365
   * days. Default 24 h, or the ttl if that is longer.
   */
  readonly maxLifetime?: Duration | undefined
  /**
   * How often a waiter asks where the store cannot wake it. Shorter takes over sooner, longer spares the store.
   * Default 100 ms, at least 1 ms, at most 1 h.
   */
  readonly waitStep?: Duration | undefined
  /**
   * How long one store call may take before its outcome counts as unknown. Too short gives up on slow answers, too long
   * delays the error when the store hangs. Default `'5s'`, at least 10 ms, at most 1 h.
   */
  readonly requestTimeout?: Duration | undefined
}

export interface AcquireOptions extends LeaseOptions {
  /** How long to wait for a key that is held. Default 0: answer at once. `Infinity` waits until it is granted or cancelled. */
  readonly wait?: Duration | undefined
  /** Cancels the wait: the call rejects with `signal.reason`, and a grant that arrives meanwhile is given back. */
  readonly signal?: AbortSignal | undefined
  /** Shown to operators beside host and pid; at most 200 characters. */
  readonly label?: string | undefined
}

export interface RunOptions extends AcquireOptions {
  /** Called when the key is held by somebody else; the guarded function does not run then. */
  readonly onLocked?: ((key: string) => unknown) | undefined
  /**
   * What to do if the lease was lost while the function ran and it returned all the same: give its value with
   * `lost: true`, or reject with a `LeaseLostError` that carries the value. Default `'return'`.
   */
  readonly onLost?: 'return' | 'reject' | undefined
}

export interface LockServiceOptions extends LeaseOptions {
  /** What speaks to the store. Default: in-process, which guards one process only. */
  readonly driver?: Driver | undefined
  /** Separates environments that share a store. Any non-empty string; default `'default'`. */
  readonly namespace?: string | undefined
  /** How long the record of a released key is kept, so that its last token stays refused. Default `'60s'`, at most a day. */
  readonly retention?: Duration | undefined
  /** For tests and simulation. Default: the host's clocks. */
  readonly clock?: Clock | undefined
  /** Jitter, 0 to 1; for tests and simulation. Default `Math.random`. Never used for tokens. */
  readonly random?: (() => number) | undefined
}

export interface ResolvedLeaseOptions {
  readonly ttlMs: number
  /** null: no renewal. */
  readonly heartbeatMs: number | null
  readonly maxLifetimeMs: number
  readonly waitStepMs: number
  readonly requestTimeoutMs: number
}

export interface ResolvedAcquireOptions {
  readonly lease: ResolvedLeaseOptions
  /** From the call on; may be `Infinity`. */
  readonly waitMs: number
  readonly signal: AbortSignal | null
  readonly label: string | null
}

export interface ResolvedLockServiceOptions {
  readonly driver: Driver
  readonly namespace: string
  /** The namespace in the form in which stores see it. */
  readonly storedNamespace: string
  readonly lease: LeaseOptions
  readonly requestTimeoutMs: number
  readonly retentionMs: number
  readonly clock: Clock
  readonly random: () => number
}

const leaseOptionNames = ['ttl', 'heartbeat', 'maxLifetime', 'waitStep', 'requestTimeout'] as const
const acquireOptionNames = [...leaseOptionNames, 'wait', 'signal', 'label'] as const
const runOptionNames = [...acquireOptionNames, 'onLocked', 'onLost'] as const
export const serviceOptionNames: readonly (keyof LockServiceOptions)[] = [
  ...leaseOptionNames,
  'driver',
  'namespace',
  'retention',
  'clock',
  'random',
] as const

const hour = 3_600_000
const day = 24 * hour
const defaultTtlMs = 30_000

/** @throws InvalidOptionError, DriverMissingError */
export function resolveLockServiceOptions(given: LockServiceOptions): ResolvedLockServiceOptions {
  const options = readOptions('LockService', given, serviceOptionNames)
  const { driver, namespace = 'default', clock = systemClock, random = Math.random } = options
  if (driver === undefined || driver === null) {
    throw new DriverMissingError(
      'No lock driver is configured. Pass one, such as redisDriver(client) from leasehold/redis, or use connect(url).',
    )
  }
  requireOption(
    holds(() => isDriver(driver)),
    'driver',
    () =>
      `a Leasehold driver, such as redisDriver(client) from leasehold/redis; got ${shown(driver)} without open() and abilities that make sense`,
  )
  requireOption(
    holds(() => isClock(clock)),
    'clock',
    'an object with the functions monotonic and wall, which answer milliseconds, and setTimer',
  )
  requireOption(typeof random === 'function', 'random', 'a function that returns numbers from 0 to 1')
  const lease = pick(options, leaseOptionNames)
  const { requestTimeoutMs } = resolveLeaseOptions(lease, driver)
  return {
    driver,
    namespace,
    storedNamespace: toStoredKey('namespace', namespace),
    lease,
    requestTimeoutMs,
    retentionMs: resolveDuration('retention', options.retention, 60_000, { min: 0, max: day }),
    clock,
    random,
  }
}

/** @throws InvalidOptionError */
export function resolveAcquireOptions(
  given: AcquireOptions,
  service: ResolvedLockServiceOptions,
): ResolvedAcquireOptions {
  const options = readOptions('acquire', given, acquireOptionNames)
  const { signal = null, label = null } = options
  requireOption(signal === null || holds(() => isAbortSignal(signal)), 'signal', 'an AbortSignal')
  const isLabel = label === null || (typeof label === 'string' && label.length <= 200)
  requireOption(isLabel, 'label', 'a string of at most 200 characters')
  return {
    lease: resolveLeaseOptions(merge(service.lease, options), service.driver),
    waitMs: resolveDuration('wait', options.wait, 0, { min: 0, max: Infinity }),
    signal,
    label,
  }
}

/** Splits the options of `runExclusive` into those of the acquire and its own. @throws InvalidOptionError */
export function resolveRunOptions(given: RunOptions): {
  readonly acquire: AcquireOptions
  readonly onLocked: ((key: string) => unknown) | undefined
  readonly onLost: 'return' | 'reject'
} {
  const options = readOptions('runExclusive', given, runOptionNames)
  const { onLocked, onLost = 'return' } = options
  requireOption(onLocked === undefined || typeof onLocked === 'function', 'onLocked', 'a function')
  const isKnown = onLost === 'return' || onLost === 'reject'
  requireOption(isKnown, 'onLost', () => `'return' or 'reject'; got ${shown(onLost)}`)
  return { acquire: pick(options, acquireOptionNames), onLocked, onLost }
}

/** @throws InvalidOptionError */
export function resolveLeaseOptions(options: LeaseOptions, driver: Driver): ResolvedLeaseOptions {
  const minTtlMs = Math.max(100, driver.abilities.minTtlMs)
  const ttlMs = resolveDuration('ttl', options.ttl, Math.max(defaultTtlMs, minTtlMs), {
    min: minTtlMs,
    max: year,
  })
  return {
    ttlMs,
    heartbeatMs: resolveHeartbeat(options.heartbeat, ttlMs),
    maxLifetimeMs: resolveDuration('maxLifetime', options.maxLifetime, Math.max(day, ttlMs), {
      min: ttlMs,
      max: year,
    }),
    waitStepMs: resolveDuration('waitStep', options.waitStep, 100, { min: 1, max: hour }),
    requestTimeoutMs: resolveDuration('requestTimeout', options.requestTimeout, 5_000, {
      min: 10,
      max: hour,
    }),
  }
}

/** An extension as long as a ttl may be. @throws InvalidOptionError */
export function resolveExtension(duration: Duration): number {
  return parseDuration('duration', duration, { min: 100, max: year })
}

/** Only undefined counts as not given: null is a mistake that a default would hide. */
function resolveDuration(
  option: string,
  value: Duration | undefined,
  preset: number,
  range: DurationRange,
): number {
  return parseDuration(option, value === undefined ? preset : value, range)
}

function isDriver({ open, abilities }: Partial<Driver>): boolean {
  const { minTtlMs = Number.NaN, maxBatch = Number.NaN } = abilities ?? {}
  return typeof open === 'function' && minTtlMs >= 0 && minTtlMs <= year && maxBatch >= 1
}

/** Its prototype alone makes no signal: `aborted` throws where the rest is missing. */
function isAbortSignal(signal: unknown): boolean {
  return signal instanceof AbortSignal && typeof signal.aborted === 'boolean'
}

function isClock(clock: Clock): boolean {
  return (
    Number.isFinite(clock.monotonic()) &&
    Number.isFinite(clock.wall()) &&
    typeof clock.setTimer === 'function'
  )
}

function resolveHeartbeat(heartbeat: boolean | Duration = true, ttlMs: number): number | null {
  if (heartbeat === false) return null
  if (heartbeat === true) return ttlMs / 3
  const longest = Math.floor(ttlMs - 2 * safetyMargin(ttlMs))
  const intervalMs = parseDuration('heartbeat', heartbeat, { min: 10, max: Infinity })
  requireOption(
    intervalMs <= longest,
    'heartbeat',
    () =>
      `at most ${longest} ms with a ttl of ${formatDuration(ttlMs)}, or the lease would end before it; got ${formatDuration(intervalMs)}`,
  )
  return intervalMs
}

/** The later one wins, where it says anything. */
function merge(defaults: LeaseOptions, options: LeaseOptions): LeaseOptions {
  return { ...defaults, ...pick(options, leaseOptionNames) }
}

function pick<Options extends object, Name extends keyof Options>(
  options: Options,
  names: readonly Name[],
): Pick<Options, Name> {
  const entries = names
    .map((name) => [name, options[name]] as const)
    .filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Pick<Options, Name>
}
