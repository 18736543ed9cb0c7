import { existsSync } from 'node:fs'
import type { Lease } from 'leasehold'
import type { FencedFile } from './fenced-file.ts'

/** What a holder finds when it runs again after a pause that was longer than its lease. */
export interface Awakening {
  /** In the very first statements, before the event loop has turned; null if it did not ask then. */
  readonly first: {
    readonly isHeld: boolean
    readonly remainingMs: number
    readonly assertHeld: string
    readonly aborted: boolean
    readonly throwIfAborted: string
    /** Whether its write with the stale fence was accepted. */
    readonly written: boolean
  } | null
  /** What its abort listeners had been called with by the end of the next timer phase. */
  readonly heard: readonly string[]
  readonly lossReason: string | null
  readonly released: string
}

/** Keeps the event loop busy for so long. */
export function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Keeps the event loop busy until the file is there, which somebody makes while the process is stopped. */
export function spinUntilThere(path: string): void {
  while (!existsSync(path));
}

/**
 * Runs `pause`, which keeps the event loop busy, and then looks what the lease says.
 *
 * @param asks whether it asks the lease at once, or only listens to the signal
 */
export async function wakeUp(
  lease: Lease,
  file: FencedFile,
  pause: () => void,
  asks: boolean,
): Promise<Awakening> {
  const heard: string[] = []
  const { signal } = lease
  signal.addEventListener('abort', () => heard.push(codeOf(signal.reason)))
  pause()
  const first = asks
    ? {
        isHeld: lease.isHeld(),
        remainingMs: lease.remainingMs,
        assertHeld: thrownBy(() => lease.assertHeld()),
        aborted: signal.aborted,
        throwIfAborted: thrownBy(() => signal.throwIfAborted()),
        written: file.write(lease.fence, -1),
      }
    : null
  // Timers are called in the order in which they are due: those that became due in the pause come first.
  await new Promise((resolve) => setTimeout(resolve, 1))
  const heardInTime = [...heard]
  return { first, heard: heardInTime, lossReason: lease.lossReason, released: await lease.release() }
}

function thrownBy(body: () => void): string {
  try {
    body()
    return 'nothing'
  } catch (error) {
    return codeOf(error)
  }
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code)
}
