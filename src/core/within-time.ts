import type { Clock, Timer } from './clock.ts'
import { DriverFault } from './errors.ts'

/**
 * Rejects with a {@link DriverFault} if a promise takes longer; its later outcome is ignored. Keeps the process alive
 * meanwhile: somebody waits for it, on a connection that by itself may not.
 */
export async function withinTime<Value>(
  clock: Clock,
  milliseconds: number,
  promise: Promise<Value>,
): Promise<Value> {
  let timer: Timer | undefined
  const late = new Promise<never>((_resolve, reject) => {
    const fail = (): void => reject(new DriverFault('unknown', 'The store did not answer in time.'))
    timer = clock.setTimer(Math.max(0, milliseconds), fail, { keepAlive: true })
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    timer?.cancel()
  }
}
