interface Listened {
  readonly callbacks: Set<() => void>
  readonly stop: () => void
}

/**
 * Listens to the callers' signals, with one listener for each signal: a hundred acquires that share the signal of a
 * shutting-down process would otherwise look like a leak to Node.js, which warns from the eleventh listener on.
 */
export class AbortListeners {
  readonly #signals = new Map<AbortSignal, Listened>()

  /** @returns stops listening; idempotent */
  add(signal: AbortSignal, callback: () => void): () => void {
    const { callbacks } = this.#signals.get(signal) ?? this.#listenTo(signal)
    callbacks.add(callback)
    return () => {
      callbacks.delete(callback)
      if (callbacks.size === 0) this.#signals.get(signal)?.stop()
    }
  }

  #listenTo(signal: AbortSignal): Listened {
    const callbacks = new Set<() => void>()
    const onAbort = (): void => {
      stop()
      for (const callback of callbacks) callback()
    }
    const stop = (): void => {
      this.#signals.delete(signal)
      signal.removeEventListener('abort', onAbort)
    }
    const listened = { callbacks, stop }
    this.#signals.set(signal, listened)
    signal.addEventListener('abort', onAbort)
    return listened
  }
}
