import { InvalidOptionError, KeyHeldError } from '../../core/errors.ts'
import type { Duration } from '../../core/duration.ts'
import type { LockService } from '../../core/lock-service.ts'
import { resolveAcquireOptions, resolveRunOptions, type RunOptions } from '../../core/options.ts'
import { readOptions } from '../../core/read-options.ts'
import { toStoredKey } from '../../core/stored-key.ts'
import { type AnyMethod, methodTarget, type MethodTarget, shownKey } from './method-target.ts'
import { resembling } from './resembling.ts'
import { locksOf } from './used-locks.ts'
import { withoutStore } from './without-store.ts'

export interface ExclusiveOptions<This = never> extends Omit<RunOptions, 'signal' | 'wait'> {
  /**
   * What a call comes to while somebody else holds the key. `'skip'`: it answers `undefined`, and the method does not
   * run. `'throw'`: it rejects with a `KeyHeldError`. `'wait'`: it waits its turn for `wait`, then rejects with a
   * `KeyHeldError`. Default `'skip'`.
   */
  readonly onContention?: 'skip' | 'throw' | 'wait' | undefined
  /** With `onContention: 'wait'`, and needed there: how long to wait. `Infinity` waits until it is granted. */
  readonly wait?: Duration | undefined
  /** Where to lock: a service, or how an instance finds its own. Default: what {@link useLocks} was told. */
  readonly locks?: LockService | ((instance: This) => LockService) | undefined
}

/**
 * Makes each call of a method run under the lease of a key, in the whole fleet; inside, `currentLease()` is that lease.
 * The method answers a promise from then on.
 *
 * Works under TC39 decorators and under `experimentalDecorators`, on methods of instances and on static ones, above or
 * below other decorators: metadata of the method stays visible.
 *
 * @param key the key, or how to make it of the call's arguments
 * @throws InvalidOptionError when the class is defined: a key or option that cannot be used, or no method. A call rejects
 *   with what `LockService.runExclusive` throws, and with a KeyHeldError as `onContention` says.
 * @example
 * class Reports {
 *   @Exclusive((id: number) => `report:${id}`, { onContention: 'wait', wait: '5s' })
 *   async build(id: number): Promise<Report> { … }
 * }
 * const reports = new Reports()
 * useLocks(reports, locks)
 */
export function Exclusive<const Args extends readonly unknown[] = readonly never[], This = never>(
  key: string | ((...args: Args) => string),
  options: ExclusiveOptions<This> & { readonly onContention: 'throw' | 'wait' },
): ExclusiveDecorator<Args, unknown>
export function Exclusive<const Args extends readonly unknown[] = readonly never[], This = never>(
  key: string | ((...args: Args) => string),
  options?: ExclusiveOptions<This>,
): ExclusiveDecorator<Args, undefined>
export function Exclusive(
  key: string | ((...args: never[]) => string),
  options: ExclusiveOptions = {},
): unknown {
  return (...args: readonly unknown[]): unknown => {
    const target = methodTarget('Exclusive', args)
    const wrapper = exclusively(target, key, checked(target, key, options))
    if (target.holder === null) return wrapper
    const descriptor = args[2] as PropertyDescriptor
    descriptor.value = wrapper
    return descriptor
  }
}

/** Either kind of method decorator, for methods that answer a promise. */
export interface ExclusiveDecorator<Args extends readonly unknown[], Skipped> {
  <This, Method extends (this: This, ...args: [...Args, ...never[]]) => Promise<unknown>>(
    method: Method,
    context: ClassMethodDecoratorContext<This, Method> & CanAnswer<Method, Skipped>,
  ): Method
  <Method extends (...args: [...Args, ...never[]]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & CanAnswer<Method, Skipped>,
  ): TypedPropertyDescriptor<Method>
}

/** A call that is skipped answers `undefined`: the method's type has to say so. */
type CanAnswer<Method extends (...args: never) => Promise<unknown>, Skipped> = unknown extends Skipped
  ? unknown
  : Skipped extends Awaited<ReturnType<Method>>
    ? unknown
    : { readonly onContention: "'skip' answers undefined: let the method's type allow it, or say 'throw'" }

interface Checked {
  readonly onContention: 'skip' | 'throw' | 'wait'
  readonly run: RunOptions
  readonly locks: LockService | ((instance: never) => LockService) | undefined
}

/** @throws InvalidOptionError */
function checked(
  target: MethodTarget,
  key: string | ((...args: never[]) => string),
  given: ExclusiveOptions,
): Checked {
  try {
    if (typeof key !== 'function') toStoredKey('key', key)
    const options = readOptions('@Exclusive', given, optionNames)
    const { onContention = 'skip', locks, ...rest } = options
    if (!['skip', 'throw', 'wait'].includes(onContention)) {
      throw new InvalidOptionError('onContention', "onContention must be 'skip', 'throw' or 'wait'.")
    }
    if ((options.wait === undefined) === (onContention === 'wait')) {
      throw new InvalidOptionError('wait', "wait goes with onContention: 'wait', and is needed there.")
    }
    if (locks !== undefined && typeof locks !== 'function' && typeof locks !== 'object') {
      throw new InvalidOptionError('locks', 'locks must be a LockService, or a function that answers one.')
    }
    const run: RunOptions = rest
    resolveAcquireOptions(resolveRunOptions(run).acquire, withoutStore)
    return { onContention, run, locks }
  } catch (error) {
    if (!(error instanceof InvalidOptionError)) throw error
    const message = `@Exclusive on ${shownKey(target.key)}: ${error.message}`
    throw new InvalidOptionError(error.option, message, { cause: error })
  }
}

function exclusively(
  { method, key: methodKey }: MethodTarget,
  key: string | ((...args: never[]) => string),
  { onContention, run, locks }: Checked,
): AnyMethod {
  return resembling(method, async function exclusive(this: unknown, ...args: readonly unknown[]) {
    const service = typeof locks === 'function' ? locks(this as never) : (locks ?? locksOf(this, methodKey))
    const itsKey = typeof key === 'function' ? key.apply(this, args as never[]) : key
    const outcome = await service.runExclusive(itsKey, () => method.call(this, ...args), run)
    if (outcome.acquired) return outcome.result
    if (onContention === 'skip') return undefined
    throw new KeyHeldError(itsKey)
  })
}

const optionNames = [
  'onContention',
  'locks',
  'wait',
  'ttl',
  'heartbeat',
  'maxLifetime',
  'waitStep',
  'requestTimeout',
  'label',
  'onLocked',
  'onLost',
] as const
