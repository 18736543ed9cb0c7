// Imported first: from here on, every timer of this process rings so many milliseconds late. A process that is slow, or
// waits for its CPU.
const lateMs = Number(process.argv[2] ?? 0)
const { setTimeout: setOwnTimeout } = globalThis

/** Node's own timer. */
export const promptTimeout: typeof setTimeout = setOwnTimeout

if (lateMs > 0) {
  const late = (callback: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]): NodeJS.Timeout =>
    setOwnTimeout(callback, delayMs + lateMs, ...args)
  Object.assign(globalThis, { setTimeout: Object.assign(late, setOwnTimeout) })
}
