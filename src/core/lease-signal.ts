/** What a {@link leaseSignal} asks before it answers. */
export interface SignalSource {
  /** Looks at both clocks, and declares the loss if the deadline has passed. */
  readonly isHeld: boolean
}

const native = (name: 'aborted' | 'reason'): ((this: AbortSignal) => unknown) =>
  Object.getOwnPropertyDescriptor(AbortSignal.prototype, name)?.get as (this: AbortSignal) => unknown
const nativeAborted = native('aborted')
const nativeReason = native('reason')
const nativeThrowIfAborted = AbortSignal.prototype.throwIfAborted

/**
 * Makes a controller's signal exact: a stock signal learns of a passed deadline only when a timer fires, which after a
 * blocked event loop is too late for the code that runs first. `aborted`, `reason` and `throwIfAborted` look at the
 * clocks themselves. (Overriding `aborted` alone is not enough, `throwIfAborted` reads an internal slot; signals
 * derived with `AbortSignal.any` follow in the next timer phase.)
 */
export function leaseSignal(controller: AbortController, source: SignalSource): AbortSignal {
  const { signal } = controller
  const looked = (): AbortSignal => {
    void source.isHeld
    return signal
  }
  Object.defineProperty(signal, 'aborted', {
    configurable: true,
    enumerable: true,
    get: () => nativeAborted.call(looked()),
  })
  Object.defineProperty(signal, 'reason', {
    configurable: true,
    enumerable: true,
    get: () => nativeReason.call(looked()),
  })
  Object.defineProperty(signal, 'throwIfAborted', {
    configurable: true,
    value: () => nativeThrowIfAborted.call(looked()),
  })
  return signal
}
