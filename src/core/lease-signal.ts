/** What a {@link leaseSignal} asks before it answers. */
export interface SignalSource {
  /** Looks at both clocks, and declares the loss if the deadline has passed. */
  readonly isHeld: boolean
}

const stock = AbortSignal.prototype

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
  for (const name of ['aborted', 'reason'] as const) {
    const get = (): unknown => Reflect.get(stock, name, looked())
    Object.defineProperty(signal, name, { configurable: true, enumerable: true, get })
  }
  const throwIfAborted = (): void => stock.throwIfAborted.call(looked())
  Object.defineProperty(signal, 'throwIfAborted', { configurable: true, value: throwIfAborted })
  return signal
}
