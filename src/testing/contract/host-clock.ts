/**
 * Runs something while this process believes that it is another time: `Date` is moved, timers and the monotonic clock
 * are not. Restores it whatever happens. One at a time: it moves the clock of the whole process.
 */
export async function withHostClockMovedBy<Result>(
  offsetMs: number,
  body: () => Promise<Result>,
): Promise<Result> {
  const HostDate = globalThis.Date
  class MovedDate extends HostDate {
    constructor(...rest: [] | [value: number | string | Date]) {
      if (rest.length === 0) super(HostDate.now() + offsetMs)
      // Only the constructor without arguments reads the clock; the other forms are passed on as they came.
      else super(...(rest as [number]))
    }

    static override now(): number {
      return HostDate.now() + offsetMs
    }
  }
  globalThis.Date = MovedDate as DateConstructor
  try {
    return await body()
  } finally {
    globalThis.Date = HostDate
  }
}
